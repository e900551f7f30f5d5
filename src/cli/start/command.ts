// `portolan start`: the service in the foreground. The first signal stops it in order (drain, chains, database),
// a second one ends the process at once.

import type { Command } from 'commander'
import { parseChains, parsePort, parseServerRoles } from '../options.ts'
import type { Shell } from '../shell.ts'

/** `portolan start`. */
export function addStartCommand(program: Command, shell: Shell): void {
  program
    .command('start')
    .summary('run the service')
    .description(
      'Runs the service until it is stopped with Ctrl-C or SIGTERM. SIGHUP lets it read its configuration again.\nWithout a configuration everything is embedded: its own database below the data directory, local chains with a little traffic, and an organization "demo" whose keys are in <data dir>/connection.json. With a configuration file none of that is started.',
    )
    .option('-p, --port <number>', 'port to listen on; 0 takes any free one', parsePort)
    .option(
      '--chains <tags>',
      'local chains of the embedded mode: some of c,q,t,s,p, or none',
      parseChains,
    )
    .option(
      '--roles <names>',
      'what this process runs: some of api,gateway,tracker,courier,sender,console',
      parseServerRoles,
    )
    .option('--no-traffic', 'let nothing happen on the local chains by itself')
    .option('--reset', 'forget all data of the embedded mode first')
    .addHelpText(
      'after',
      `
Examples:
  portolan start
  portolan start --chains c,t --no-traffic
  portolan start --port 8080 --data-dir /var/lib/portolan
  DATABASE_URL=postgres://portolan@db/portolan portolan start
  DATABASE_URL=postgres://db/portolan portolan start --roles api,gateway

The log is for people on a terminal, and JSON lines where there is none or CI is
set.`,
    )
    .action(async (_options, command: Command) => {
      const { runStart } = await import('./run.ts')
      await runStart(shell, command.optsWithGlobals())
    })
}
