// `portolan chains`: the nodes and the tracking of each chain, read from the running service.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan chains`. */
export function addChainsCommand(program: Command, shell: Shell): void {
  program
    .command('chains')
    .summary('show the chains and the state of their nodes')
    .description(
      'Asks the running service: head, lag, latency, error rate and abilities of each node, how far each chain is tracked, and what was wrong with that.',
    )
    .option(
      '--url <url>',
      'address of server.admin_listen; that of the service of the data directory unless given',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExamples:\n  portolan chains\n  portolan chains --json')
    .action(async (_options, command: Command) =>
      (await import('./run.ts')).showChains(shell, command.optsWithGlobals()),
    )
}
