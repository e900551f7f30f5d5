// `portolan doctor`: one file per group of checks, each of which returns findings with a fix. It changes
// nothing, works beside a running service, and gives every check a time limit.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan doctor`. */
export function addDoctorCommand(program: Command, shell: Shell): void {
  program
    .command('doctor')
    .summary('check everything that the service needs')
    .description(
      'Checks Node, the configuration, the data directory, the disk, the port, the database, the master key, the clock, Redis and the nodes of the chains. Changes nothing, and works while the service runs.\nThe exit code is 1 if the service cannot work.',
    )
    .option('--json', 'print JSON')
    .action(async (_options, command: Command) => {
      const { runDoctor } = await import('./run.ts')
      await runDoctor(shell, command.optsWithGlobals())
    })
}
