// `portolan migrate`, `export` and `import`. An archive is one consistent snapshot, is checked as a whole
// before it is committed, and goes into an empty database only.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan migrate`, `portolan export` and `portolan import`. */
export function addStorageCommands(program: Command, shell: Shell): void {
  program
    .command('migrate')
    .summary('bring the database to the schema of this version')
    .description(
      'Brings the database to the schema of this version. The service does the same when it starts; use this to run it as a separate step.',
    )
    .option('-s, --status', 'only say which migrations are missing')
    .option(
      '--plan',
      'only show what they would do: statements, locks, and how long those are held',
    )
    .option('--json', 'with --plan, print JSON')
    .option(
      '--distribute',
      'then place the transfers on all machines of Citus; stop the service first',
    )
    .action(async (_options, command: Command) => {
      const { runMigrate } = await import('./migrate.ts')
      await runMigrate(shell, command.optsWithGlobals())
    })
  program
    .command('export')
    .summary('write the whole installation into one file')
    .description(
      'Writes the whole database, as one consistent snapshot, into a compressed archive that this and any later version reads on any PostgreSQL from 15 on. The service may keep running.\nSecrets in it stay sealed: keep the master key too, in another place.',
    )
    .argument('<file>', 'file to write, or - for the standard output')
    .option('-f, --force', 'replace the file if it exists')
    .addHelpText(
      'after',
      `
Examples:
  portolan export backup.portolan
  portolan export - | ssh backup 'cat > backup.portolan'`,
    )
    .action(async (file, _options, command: Command) => {
      const { runExport } = await import('./export.ts')
      await runExport(shell, file, command.optsWithGlobals())
    })
  program
    .command('import')
    .summary('read such a file into an empty database')
    .description(
      'Reads an archive into an empty database, all or nothing. The service must not run, and must have the master key of the old installation before it starts.',
    )
    .argument('<file>', 'file to read, or - for the standard input')
    .addHelpText(
      'after',
      `
Examples:
  portolan import backup.portolan --data-dir /var/lib/portolan
  DATABASE_URL=postgres://portolan@db/portolan portolan import backup.portolan`,
    )
    .action(async (file, _options, command: Command) => {
      const { runImport } = await import('./import.ts')
      await runImport(shell, file, command.optsWithGlobals())
    })
}
