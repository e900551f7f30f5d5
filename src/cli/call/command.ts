// `portolan call`: sign a request and send it. It checks names and JSON locally with the catalogue of
// operations, and never prints a secret.

import { type Command, Option } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan call`. */
export function addCallCommand(program: Command, shell: Shell): void {
  program
    .command('call')
    .summary('call an operation of a running service')
    .description(
      'Signs a request, sends it, and prints the answer.\nWithout --url it talks to the service that runs on the data directory, with its own keys.',
    )
    .argument('[chain]', 'admin, q, t, s, p, c or another chain; base/sepolia is a network of one')
    .argument('[operation]', 'name of the operation, such as ListWallets')
    .argument('[request]', 'JSON; @file reads a file, - reads the standard input')
    .option('-l, --list', 'list the operations, or describe one, and call nothing')
    .addOption(
      new Option('--as <role>', 'which key of connection.json signs')
        .choices(['admin', 'member'])
        .default(undefined, 'admin for the service admin, else member'),
    )
    .option('--url <url>', 'address of the service (or PORTOLAN_BASE_URL)')
    .option('--key <api_key>', 'key to sign with (or PORTOLAN_API_KEY)')
    .option('--secret <api_secret>', 'its secret; better PORTOLAN_API_SECRET, which ps cannot see')
    .option(
      '--idempotency-key <key>',
      'for operations that create: repeat with the same key without creating twice',
    )
    .addHelpText(
      'after',
      `
Examples:
  portolan call --list
  portolan call --list c RegisterWallet
  portolan call admin GetOrganizationByDomain '{"domain":"demo"}'
  portolan call c RegisterWallet @wallet.json
  jq -n '{domain: "demo"}' | portolan call admin GetOrganizationByDomain -
  PORTOLAN_BASE_URL=https://portolan.example.org \\
    PORTOLAN_API_KEY=… PORTOLAN_API_SECRET=… \\
    portolan call t ListWallets`,
    )
    .action(async (service, operation, request, _options, command: Command) => {
      // Options of the program, such as --config, belong to every command.
      const options = command.optsWithGlobals()
      const called = { service, operation, request }
      if (options.list) {
        const { runList } = await import('./list.ts')
        await runList(shell, called, options)
      } else {
        const { runCall } = await import('./run.ts')
        await runCall(shell, called, options)
      }
    })
}
