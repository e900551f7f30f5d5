// `portolan faucet` and `portolan reorg`: tools for local chains. They use the connection file of the running
// service and refuse any other chain.

import type { Command } from 'commander'
import { parseAmount, parseChain, parseDepth } from '../options.ts'
import type { Shell } from '../shell.ts'

/** `portolan faucet` and `portolan reorg`: the local chains of the embedded mode, driven manually. */
export function addDevCommands(program: Command, shell: Shell): void {
  program
    .command('faucet')
    .summary('send native coin to an address on a local chain')
    .description('Sends native coin on a local chain of the running service in embedded mode.')
    .argument('<chain>', 'c, q, t, s or p', parseChain)
    .argument('<address>', 'who gets it')
    .argument('[amount]', 'in the smallest unit; one whole coin unless given', parseAmount)
    .addHelpText(
      'after',
      '\nExamples:\n  portolan faucet c 0x70997970c51812dc3a010c7d01b50e0d17dc79c8\n  portolan faucet s 0x2 2500000000',
    )
    .action(async (chain: string, address: string, amount: bigint | undefined, _options, command) =>
      (await import('./run.ts')).fund(shell, { chain, address, amount }, command.optsWithGlobals()),
    )
  program
    .command('reorg')
    .summary('replace the newest blocks of local chain c')
    .description(
      'Replaces the newest blocks of local chain c by blocks without their transactions (embedded mode only). Their transfers are removed from lists, and webhooks that reported them report the reorganization.',
    )
    .argument('<chain>', 'c: the other local chains do not reorganize')
    .argument('[depth]', 'how many blocks, 1 to 64', parseDepth, 1)
    .addHelpText('after', '\nExamples:\n  portolan reorg c 3')
    .action(async (chain: string, depth: number, _options, command) =>
      (await import('./run.ts')).reorganize(shell, { chain, depth }, command.optsWithGlobals()),
    )
}
