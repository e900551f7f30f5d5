import { expect, it } from 'vitest'
import { isPruned } from './nodes.ts'

const root = 'd4f2'.repeat(16)

/** As the sources of the nodes have them; `nodes.ts` names the files. */
it.each<[string, number, string]>([
  ['geth', -32000, `missing trie node ${root} (path ) state 0x${root} is not available`],
  ['geth', -32000, 'required historical state unavailable (reexec=128)'],
  ['geth', -32000, `historical state ${root} is not available`],
  ['geth', -32000, `state 0x${root} is not available`],
  ['geth', 4444, 'pruned history unavailable'],
  ['Erigon', -32000, 'old data not available due to pruning'],
  ['Nethermind', -32002, `No state available for block 123 (0x${root})`],
  [
    'Nethermind',
    -32602,
    `Receipts for block 5 (0x${root}) are neither stored nor reproducible from state history.`,
  ],
  ['Nethermind', 4444, 'Pruned history unavailable'],
  ['Reth', -32000, 'state at block #123 is pruned'],
  ['Reth', -32602, 'distance to target block exceeds maximum proof window'],
  ['Besu', -32000, 'World state unavailable'],
  ['Besu', 4444, 'Pruned history unavailable'],
])('%s has thrown it away: %i %s', (_, code, message) => {
  expect(isPruned({ code, message })).toBe(true)
})

it.each<[string, number, string]>([
  ['geth, which indexes still', -32000, "state histories haven't been fully indexed yet"],
  ['geth, on a branch that was left', -32000, `state 0x${root} is not canonincal`],
  ['geth, which lags', -32000, 'header not found'],
  ['Besu, which starts', -32008, 'Initial sync is still in progress'],
  ['Besu, which lags', -39001, 'Unknown block'],
  ['a service', -32000, 'historical data is temporarily unavailable'],
  ['a service', -32000, 'missing trie node, please try again later'],
])('%s may have it a moment later: %i %s', (_, code, message) => {
  expect(isPruned({ code, message })).toBe(false)
})
