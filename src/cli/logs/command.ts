// `portolan logs`: reads the JSON log of the service from a file or the standard input, filters it and prints one line
// per event for people. It needs no service and no configuration.

import { type Command, Option } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan logs`. */
export function addLogsCommand(program: Command, shell: Shell): void {
  program
    .command('logs')
    .summary('filter and follow the JSON log of the service')
    .description(
      'Prints the JSON log of the service for people. It reads a file, or the standard input: lines that are not JSON are printed as they are.',
    )
    .argument('[file]', 'log file; the standard input unless given')
    .option('-f, --follow', 'wait for new lines of the file, until Ctrl-C')
    .addOption(
      new Option('-l, --level <level>', 'this level and more severe ones')
        .choices(['debug', 'info', 'warn', 'error', 'fatal'])
        .default('debug'),
    )
    .option('--chain <chain>', 'lines of one chain')
    .option('--request <id>', 'lines of one request, by its id')
    .option('--organization <id>', 'lines of one organization')
    .option('--grep <text>', 'lines that contain a text')
    .option('--json', 'print the lines as they are')
    .addHelpText(
      'after',
      `
Examples:
  journalctl -u portolan -o cat -f | portolan logs --level warn
  portolan logs portolan.log --request 01a2…
  portolan logs portolan.log -f --chain c`,
    )
    .action(async (file, _options, command: Command) => {
      const { runLogs } = await import('./run.ts')
      await runLogs(shell, file, command.optsWithGlobals())
    })
}
