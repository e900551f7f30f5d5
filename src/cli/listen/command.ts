// `portolan listen`: a local receiver of webhooks. It verifies signatures and sequence numbers with the rules of
// `docs/webhooks.md`, and removes its webhook when it ends.

import { type Command, InvalidArgumentError, Option } from 'commander'
import { parsePort } from '../options.ts'
import type { Shell } from '../shell.ts'

/** `portolan listen`. */
export function addListenCommand(program: Command, shell: Shell): void {
  program
    .command('listen')
    .summary('receive webhook deliveries, verify and print them')
    .description(
      'Receives deliveries, checks their signatures and the gapless sequence, and prints them.\nWith a chain it registers a webhook for all wallets there, and removes it when it ends. Without one it waits for the webhooks that you point to it.',
    )
    .argument('[chain]', 'a chain with wallets, such as c: registers a webhook of it')
    .option('-p, --port <port>', 'port to listen on', parsePort, 4801)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--endpoint <url>', 'how the service reaches this receiver, if not by host and port')
    .option('--confirmation <number>', 'confirmations of the registered webhook', parseCount, 1)
    .option('--signing-secret <whsec>', 'secret to verify with (or PORTOLAN_SIGNING_SECRET)')
    .option(
      '--answer <status>',
      'HTTP status to answer with, to try how retries go',
      parseStatus,
      204,
    )
    .option('--json', 'print every delivery as one line of JSON')
    .addOption(
      new Option('--as <role>', 'which key of connection.json signs').choices(['admin', 'member']),
    )
    .option('--url <url>', 'address of the service (or PORTOLAN_BASE_URL)')
    .option('--key <api_key>', 'key to sign with (or PORTOLAN_API_KEY)')
    .option('--secret <api_secret>', 'its secret; better PORTOLAN_API_SECRET, which ps cannot see')
    .addHelpText(
      'after',
      `
Examples:
  portolan listen c
  portolan listen --signing-secret whsec_…
  portolan listen c --answer 500`,
    )
    .action(async (service: string | undefined, _options, command: Command) => {
      const { runListen } = await import('./run.ts')
      await runListen(shell, service, command.optsWithGlobals())
    })
}

function parseCount(text: string): number {
  if (!/^\d{1,7}$/.test(text) || Number(text) > 1_000_000)
    throw new InvalidArgumentError('Confirmations are a number from 0 to 1000000.')
  return Number(text)
}

function parseStatus(text: string): number {
  if (!/^[2-5]\d\d$/.test(text))
    throw new InvalidArgumentError('A status is a number from 200 to 599.')
  return Number(text)
}
