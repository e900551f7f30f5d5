// `portolan config`: check, print and explain the configuration, and let a running service read it again. It needs no
// database and no node, and prints the source of each value but no secret.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan config`. */
export function addConfigCommand(program: Command, shell: Shell): void {
  const group = program
    .command('config')
    .summary('check, print and reload the configuration')
    .description(
      'The configuration is one YAML file, overridden by environment variables: PORTOLAN_SERVER__PORT sets server.port.',
    )
    .addHelpText(
      'after',
      `
Examples:
  portolan config example > portolan.yaml
  portolan config check
  portolan config reload
  portolan config print --config /etc/portolan/portolan.yaml
  portolan config schema > portolan.schema.json`,
    )
  const run = () => import('./run.ts')

  group
    .command('check')
    .description('Report all errors of the configuration.')
    .action(async (_options, command: Command) =>
      (await run()).checkConfiguration(shell, command.optsWithGlobals()),
    )
  group
    .command('print')
    .description('Print every value and where it comes from; secrets are masked.')
    .action(async (_options, command: Command) =>
      (await run()).printConfiguration(shell, command.optsWithGlobals()),
    )
  group
    .command('reload')
    .description(
      'Let the running service read its configuration again: chains, networks, nodes, log level, default limits, origins and webhook settings change at once; what needs a restart is named. With an error in the configuration nothing changes.',
    )
    .option(
      '--url <url>',
      'address of server.admin_listen; that of the service of the data directory unless given',
    )
    .option('--json', 'print JSON')
    .action(async (_options, command: Command) =>
      (await import('./reload.ts')).reloadConfiguration(shell, command.optsWithGlobals()),
    )
  group
    .command('schema')
    .description('Print the JSON Schema of the file, for editors.')
    .action(async () => (await run()).printSchema(shell))
  group
    .command('example')
    .description('Print a file with every key, its description and its default.')
    .action(async () => (await run()).printExample(shell))
}
