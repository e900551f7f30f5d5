// `portolan master-key`: show and rotate the key that encrypts stored secrets. Rotation encrypts row by row
// and can be interrupted: both keys are accepted until it ends.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan master-key`. */
export function addMasterKeyCommand(program: Command, shell: Shell): void {
  const group = program
    .command('master-key')
    .summary('show and rotate the key that seals secrets')
    .description('Several master keys are given one per line: the first seals, all of them open.')
    .addHelpText(
      'after',
      `
Rotation without downtime:
  1. Add the new key (openssl rand -hex 32) as the second line of the key,
     everywhere. Services read a file or a command again within
     security.master_key_refresh_seconds. Where the key is a variable, restart
     one service after the other.
  2. When all of them have read it, make it the first line, everywhere. Again
     wait or restart.
  3. portolan master-key rotate
     It waits until every running service opens with the new key, and changes
     nothing if one does not.
  4. Remove the old line when "portolan master-key status" shows no value of it.
     A service opens with it until it is restarted.`,
    )
  const run = () => import('./run.ts')
  group
    .command('status')
    .description('Show which key has sealed how many values.')
    .option('--json', 'print JSON')
    .action(async (_options, command: Command) =>
      (await run()).showMasterKeys(shell, command.optsWithGlobals()),
    )
  group
    .command('rotate')
    .description(
      'Seal all values with the first key that an earlier one has sealed. May be interrupted and repeated; services keep running.',
    )
    .action(async (_options, command: Command) =>
      (await run()).rotateMasterKey(shell, command.optsWithGlobals()),
    )
}
