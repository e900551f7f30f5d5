// `portolan init`: questions, checks of the given nodes, and `portolan.yaml`. Nothing is written before all
// answers are valid, and an existing file is not replaced without `--force`.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan init`. */
export function addInitCommand(program: Command, shell: Shell): void {
  program
    .command('init')
    .summary('write portolan.yaml for your own nodes')
    .description(
      'Asks for the nodes of your chains and for a database, identifies each node, and writes a commented portolan.yaml. With options it asks nothing.',
    )
    .usage('[options] [--<chain> <url...>]')
    .option('--c <url...>', 'nodes of the EVM chain of variant C')
    .option('--q <url...>', 'nodes of the rollup of the query service')
    .option('--t <url...>', 'TON nodes (toncenter HTTP API v2)')
    .option('--s <url...>', 'Sui nodes (gRPC)')
    .option('--p <url...>', 'Polkadot Asset Hub nodes (WebSocket)')
    .option('--database <url>', 'PostgreSQL 15 or newer; embedded unless given')
    .option('-o, --output <file>', 'file to write', 'portolan.yaml')
    .option('--force', 'replace the file if it is there')
    .addHelpText(
      'after',
      `
Every well-known EVM chain is an option: --ethereum, --base, --polygon,
--arbitrum, --bsc and so on. A node of a test network goes to that network of
the chain. --node takes nodes of any EVM chain and names it by the chain id.

Examples:
  portolan init
  portolan init --ethereum https://a.example/KEY --base https://b.example/KEY
  portolan init --c http://127.0.0.1:8545 --database env:DATABASE_URL`,
    )
    // The names of chains are in a table that is loaded only here.
    .allowUnknownOption()
    .allowExcessArguments()
    .action(async (_options, command: Command) =>
      (await import('./run.ts')).runInit(shell, command.optsWithGlobals(), command.args),
    )
}
