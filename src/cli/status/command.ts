// `portolan status`: what the running service does, once or as a live screen. It reads `/status` at the address of the
// operator's routes and changes nothing. It fits into 80 columns, and uses colour only where a terminal shows it.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan status`. */
export function addStatusCommand(program: Command, shell: Shell): void {
  program
    .command('status')
    .summary('show chains, tracking, webhooks and problems of the running service')
    .description('Shows the state of the running service: once, or with --watch as a live screen.')
    .option('-w, --watch', 'update the screen every two seconds, until Ctrl-C')
    .option('--json', 'print JSON')
    .option(
      '--url <url>',
      'address of server.admin_listen; that of the data directory unless given',
    )
    .action(async (_options, command: Command) => {
      const { runStatus } = await import('./run.ts')
      await runStatus(shell, command.optsWithGlobals())
    })
}
