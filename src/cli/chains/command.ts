// `portolan chains`: the nodes and the tracking of each chain, read from the running service; and the commands that
// add and remove chains in the configuration file.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan chains`. */
export function addChainsCommand(program: Command, shell: Shell): void {
  const group = program
    .command('chains')
    .summary('show, add and remove chains')
    .description(
      'Asks the running service: head, lag, latency, error rate and abilities of each node, how far each chain is tracked, and what was wrong with that.',
    )
    // Commander gives an option of a group to the group wherever it is written, so that there is one for both.
    .option(
      '--url <url...>',
      'address of server.admin_listen, that of the service of the data directory unless given; with add, the nodes of the chain',
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Examples:
  portolan chains
  portolan chains --json
  portolan chains add base https://base.example/KEY
  portolan chains add base/sepolia https://sepolia.example/KEY
  portolan chains add base --variant C,Q --url https://base.example/KEY
  portolan chains remove base

The configuration file is changed, and a running service reads it at once.`,
    )
    .action(async (_options, command: Command) => {
      const { url, ...options } = command.optsWithGlobals<{ url?: string[] }>()
      const own = url?.[0] === undefined ? options : { ...options, url: url[0] }
      await (await import('./run.ts')).showChains(shell, own)
    })
  group
    .command('add')
    .description(
      'Add a chain to the configuration file, or a network to a chain. Its nodes are asked which chain they are on: that decides the variant of a new chain, the settings of a well-known one and the network, unless they are given. env:NAME and file:/path are allowed as addresses.',
    )
    .argument('<name>', 'name of the chain, or chain/network')
    .argument('[urls...]', 'nodes, as with --url')
    .option(
      '--variant <letters>',
      'C, Q, T, S or P; C,Q for both on one EVM chain; what the node is unless given',
    )
    .option('--network <name>', 'name of the network; that of a well-known chain, else mainnet')
    .option('--shared', 'allow nodes of another configured chain')
    .action(async (name: string, urls: string[], _options, command: Command) => {
      const { url = [], ...options } = command.optsWithGlobals()
      await (await import('./edit.ts')).addChain(shell, name, {
        ...options,
        url: [...urls, ...url],
      })
    })
  group
    .command('remove')
    .description(
      'Remove a chain, or one network of it, from the configuration file. What is stored of it can still be read.',
    )
    .argument('<name>', 'name of the chain, or chain/network')
    .option('--force', 'also if there are wallets')
    .action(async (name: string, _options, command: Command) =>
      (await import('./edit.ts')).removeChain(shell, name, command.optsWithGlobals()),
    )
}
