// `portolan backup` and `portolan restore`: base backups of the embedded PostgreSQL, and recovery to a point in time. It
// uses `storage/embedded`. A backup is complete or absent; a restore keeps the files from before and puts them back
// when it fails.

import { type Command, InvalidArgumentError } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan backup` and `portolan restore`. */
export function addBackupCommands(program: Command, shell: Shell): void {
  const run = () => import('./run.ts')
  program
    .command('backup')
    .summary('copy the embedded database to a folder while it runs')
    .description(
      'Makes a base backup of the embedded PostgreSQL, from which "portolan restore" recovers any later moment that is archived. The service may keep running. A database of your own (database.url) has its own tools.\nSecrets in it stay sealed: keep the master key too, in another place.',
    )
    .argument('[directory]', 'where backups go; database.embedded.backup.directory unless given')
    .option('--list', 'list the backups that are there')
    .option('--keep <count>', 'delete older backups, and the WAL that only they need', parseCount)
    .option(
      '--command <command>',
      'give the finished backup as a tar archive to a shell command; %n is its name',
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Examples:
  portolan backup /mnt/backups --keep 7
  portolan backup --list
  portolan backup --command 'aws s3 cp - s3://backups/portolan/%n.tar'`,
    )
    .action(async (directory, _options, command: Command) =>
      (await run()).runBackup(shell, directory, command.optsWithGlobals()),
    )
  program
    .command('restore')
    .summary('bring the embedded database back to a moment')
    .description(
      'Replaces the embedded database by a base backup and replays the archived changes up to a time, or all of them. The service must not run. The files from before are kept. After the next start the tracker continues from the restored block; "portolan backfill" reads blocks that were skipped.',
    )
    .argument(
      '[directory]',
      'where the backups are; database.embedded.backup.directory unless given',
    )
    .option(
      '--at <time>',
      'the moment, such as 2026-11-16T09:30:00Z; the newest unless given',
      parseTime,
    )
    .option('--backup <name>', 'a base backup other than the newest that fits')
    .option('--yes', 'do it; without this nothing is changed')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Examples:
  portolan restore --at 2026-11-16T09:30:00Z --yes
  portolan restore /mnt/backups --yes --data-dir /var/lib/portolan`,
    )
    .action(async (directory, _options, command: Command) =>
      (await run()).runRestore(shell, directory, command.optsWithGlobals()),
    )
}

function parseCount(text: string): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (count < 1) throw new InvalidArgumentError('Keep at least 1 backup.')
  return count
}

// Without a time zone a time would be that of the machine, which differs between the servers of an
// operator.
function parseTime(text: string): Date {
  const time = /^\d{4}-\d\d-\d\dT/.test(text) ? new Date(text) : new Date(Number.NaN)
  if (Number.isNaN(time.getTime()))
    throw new InvalidArgumentError('A time is written like 2026-11-16T09:30:00Z.')
  return time
}
