// `portolan nodes`: adds nodes to a network in the configuration file and removes them. A running service reads the
// file at once; the other networks do not notice.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan nodes`. */
export function addNodesCommand(program: Command, shell: Shell): void {
  const group = program
    .command('nodes')
    .summary('add and remove nodes of a network')
    .description('Change the nodes of a network in the configuration file and in what runs.')
    .addHelpText(
      'after',
      `
Examples:
  portolan nodes add base https://base-2.example/KEY
  portolan nodes add base/sepolia env:SEPOLIA_URL --name backup --priority 1
  portolan nodes remove base https://base-2.example/KEY`,
    )
  const run = () => import('./edit.ts')
  group
    .command('add')
    .description('Add a node to a network.')
    .argument('<chain>', 'name of the chain, or chain/network')
    .argument('<url>', 'address of the node; env:NAME and file:/path are allowed')
    .option('--name <name>', 'name of the node in status and metrics')
    .option('--priority <number>', 'nodes with a higher number are asked later')
    .action(async (chain: string, url: string, _options, command: Command) =>
      (await run()).addNode(shell, chain, url, command.optsWithGlobals()),
    )
  group
    .command('remove')
    .description('Remove a node from a network.')
    .argument('<chain>', 'name of the chain, or chain/network')
    .argument('<node>', 'its address as in the file, or its name')
    .action(async (chain: string, node: string, _options, command: Command) =>
      (await run()).removeNode(shell, chain, node, command.optsWithGlobals()),
    )
}
