// `portolan backfill`: index past blocks for addresses that were registered later. It runs beside the service,
// stores in steps and continues after an interruption.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan backfill`. */
export function addBackfillCommand(program: Command, shell: Shell): void {
  program
    .command('backfill')
    .summary('index the history of the registered addresses')
    .description(
      'Searches past blocks for transfers of the addresses that are registered now and adds them to the lists; webhooks are notified of them with `backfilled: true`. Gaps are closed as far as they are filled. The service may keep running. After an interruption the same command continues.',
    )
    .argument('<chain>', 'chain to look through, such as c; c/ropsten is a network of it')
    .requiredOption('--from <block>', 'first block')
    .option('--to <block>', 'last block; the last one that is tracked unless given')
    .addHelpText('after', '\nExamples:\n  portolan backfill c --from 19000000')
    .action(async (chain, _options, command: Command) =>
      (await import('./run.ts')).runBackfillCommand(shell, chain, command.optsWithGlobals()),
    )
}
