import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan rewind`. */
export function addRewindCommand(program: Command, shell: Shell): void {
  program
    .command('rewind')
    .summary('take back everything above a block and track it again')
    .description(
      'For a reorganization that goes further back than the blocks that are kept. Shows what would be taken back: transfers leave the lists, and webhooks that were notified of them are notified of TRANSFER_STATE_REORGED. With --yes it is done in one transaction, and the tracker goes on from the block. The service may go on running.',
    )
    .argument('<chain>', 'chain to take back: c, s, p or t')
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
