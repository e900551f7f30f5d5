// `portolan rewind`: take back blocks above a height, for a reorganization deeper than the stored blocks. It
// shows what would be removed first, and runs in one transaction.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan rewind`. */
export function addRewindCommand(program: Command, shell: Shell): void {
  program
    .command('rewind')
    .summary('remove everything above a block and track it again')
    .description(
      'For a reorganization deeper than the stored blocks. Shows what would be removed: transfers leave the lists, and webhooks are notified of TRANSFER_STATE_REORGED. With --yes it runs in one transaction, and the tracker continues from the block. The service may keep running.',
    )
    .argument('<chain>', 'chain to take back, such as c; c/ropsten is a network of it')
    .requiredOption('--to <block>', 'last block that stays')
    .option('--yes', 'do it')
    .addHelpText(
      'after',
      '\nExamples:\n  portolan rewind c --to 19000000\n  portolan rewind c --to 19000000 --yes',
    )
    .action(async (chain, _options, command: Command) =>
      (await import('./run.ts')).runRewindCommand(shell, chain, command.optsWithGlobals()),
    )
}
