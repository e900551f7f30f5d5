import { compileLogQuery, type LogKeys, type LogQuery } from '../src/gateway/rpc/topics.ts'
import { createLogIndex } from '../src/gateway/streams/log-index.ts'
import { median } from './lib/results.ts'

/** CPU time of one block of logs against that many different subscriptions. */
export type Matching = { subscriptions: number; matches: number; ms: number }

const hex = (value: number, bytes: number) => `0x${value.toString(16).padStart(bytes * 2, '0')}`
const transfer = hex(0xddf252ad, 32)
const tokens = 500

/** Transfers of a few hundred tokens between many accounts, as a busy block has them. */
const blockOf = (count: number): LogKeys[] =>
  Array.from({ length: count }, (_, index) => ({
    address: hex(index % tokens, 20),
    topics: [transfer, hex(index * 7, 32), hex(index * 13, 32)],
  }))

/** What wallets and indexers ask for: an account's transfers, those of one token, or a whole token. */
const queryOf = (index: number): LogQuery => {
  const address = hex(index % tokens, 20)
  const account = hex(index * 13 + 1_000_003 * (index % 10 === 0 ? 0 : 1), 32)
  if (index % 3 === 0) return compileLogQuery({ topics: [transfer, null, account] })
  if (index % 3 === 1) return compileLogQuery({ address, topics: [transfer, null, account] })
  return compileLogQuery({ address: [hex(tokens + index, 20)], topics: [transfer] })
}

/** Measures the index with this many subscriptions, median of some rounds. */
export function measureMatching(subscriptions: number, logs = 5_000, rounds = 15): Matching {
  const index = createLogIndex<{ query: LogQuery }>()
  for (let at = 0; at < subscriptions; at++) index.add({ query: queryOf(at) })
  const samples: number[] = []
  let matches = 0
  for (let round = 0; round < rounds; round++) {
    // Fresh strings each time: a parsed block has none that were compared before.
    const block: LogKeys[] = JSON.parse(JSON.stringify(blockOf(logs)))
    const before = process.cpuUsage()
    matches = 0
    for (const log of block) index.match(log, () => matches++)
    const { user, system } = process.cpuUsage(before)
    samples.push((user + system) / 1_000)
  }
  return { subscriptions, matches, ms: median(samples) }
}
