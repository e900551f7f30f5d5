// `portolan top`: the busiest organizations, keys, methods and nodes. It reads the counters of calls in the database,
// which all processes write, and `/status` of the operator's routes for nodes. It changes nothing. It fits into 80
// columns, and uses colour only where a terminal shows it.

import type { Command } from 'commander'
import { parseRows } from '../options.ts'
import type { Shell } from '../shell.ts'

/** `portolan top`. */
export function addTopCommand(program: Command, shell: Shell): void {
  program
    .command('top')
    .summary('show the busiest organizations, keys, methods and nodes')
    .description(
      'Shows the busiest organizations, keys, methods and nodes as a live screen, sorted by calls per second and then by the calls of this day (UTC). Without a terminal, or with --once, it prints one snapshot. Services store their counts every 5 seconds.',
    )
    .option('--once', 'print one snapshot')
    .option('--json', 'print one snapshot as JSON')
    .option('-n, --rows <count>', 'rows of each list', parseRows, 5)
    .option(
      '--url <url>',
      'address of server.admin_listen; that of the data directory unless given',
    )
    .action(async (_options, command: Command) => {
      const { runTop } = await import('./run.ts')
      await runTop(shell, command.optsWithGlobals())
    })
}
