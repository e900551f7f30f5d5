import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { createNetwork } from '../network.ts'
import { createFakePool } from '../testing/fake-pool.ts'
import { createStillCanonical } from '../testing/still-canonical.ts'
import type { Answer } from './answer.ts'
import { findFilterProblem, type LogFilter } from './check-filter.ts'
import { compileLogQuery, matchesKeys, plainFilter, withTopics } from './topics.ts'

const topics = [1, 2, 3].map((value) => `0x${value.toString(16).padStart(64, '0')}`)
const address = `0x${'a'.repeat(40)}`
type Log = { address: string; topics: string[] }

const position = fc.oneof(
  fc.constant(null),
  fc.constantFrom(...topics),
  fc.array(fc.oneof(fc.constantFrom(...topics), fc.constant(null)), { maxLength: 3 }),
)
const filters = fc.record(
  {
    topics: fc.oneof(fc.array(position, { maxLength: 4 }), fc.constant(null)),
    address: fc.constantFrom([], address, [address], null),
  },
  { requiredKeys: [] },
)
const logs: fc.Arbitrary<Log[]> = fc.array(
  fc.record({
    address: fc.constant(address),
    topics: fc.array(fc.constantFrom(...topics), { maxLength: 4 }),
  }),
  { maxLength: 10 },
)

/** Nodes, as they read a filter; an empty list of alternatives matches nothing for the second. */
const nodes: Record<string, (filter: LogFilter, log: Log) => boolean> = {
  geth: ({ topics: wanted }, log) =>
    (wanted?.length ?? 0) <= log.topics.length && anvil({ topics: wanted ?? null }, log),
  anvil: (filter, log) => anvil(filter, log),
  strict: ({ topics: wanted, address: from }, log) =>
    !(Array.isArray(from) && from.length === 0) &&
    (wanted ?? []).every((topic, at) => topic === null || [topic].flat().includes(log.topics[at]!)),
}
const anvil = ({ topics: wanted }: LogFilter, log: Log): boolean =>
  (wanted ?? []).every((topic, at) => {
    const list = [topic].flat()
    return list.length === 0 || list.includes(null) || list.includes(log.topics[at] as string)
  })

describe.each(Object.entries(nodes))('on a node that reads filters as %s does', (_, matches) => {
  it('getLogs finds what filters and subscriptions find', async () => {
    await fc.assert(
      fc.asyncProperty(filters, logs, async (filter, all) => {
        expect(findFilterProblem(filter)).toBeUndefined()
        const pool = createFakePool()
        pool.best = { number: 9, hash: topics[0]!, parent_hash: topics[1]!, timestamp: 1 }
        pool.answer = ({ params }) => ({
          ok: true,
          result: JSON.stringify(all.filter((log) => matches(JSON.parse(params)[0], log))),
        })
        const network = createNetwork({
          chain: 'c',
          network: 'm',
          prefix: 'eth',
          pool,
          canonical: createStillCanonical(pool, { now: () => 0, finalityDepth: 10 }),
          allowedMethods: [],
          cacheBytes: 100_000,
          maxLogRange: 1000,
          timeoutMs: 1000,
          now: () => 0,
          spill: () => {},
        })
        const session = network.sessionOf({
          credential_id: 'k',
          organization_id: 'o',
          role: 'ROLE_MEMBER',
        })
        const args = [filter]
        const params = JSON.stringify(args)
        const { text } = await new Promise<Answer>((resolve) =>
          network.call(
            { id: '1', method: 'eth_getLogs', params, args, refusal: undefined },
            session,
            resolve,
          ),
        )
        network.stop()
        const query = compileLogQuery(filter)
        expect(JSON.parse(text)).toEqual(all.filter((log) => matchesKeys(query, log)))
      }),
      { numRuns: 300 },
    )
  })
})

test('a filter that all nodes read alike is sent as it came', () => {
  const [a, b] = topics as [string, string]
  for (const filter of [
    {},
    { topics: [] },
    { topics: [a] },
    { topics: [null, b] },
    { topics: [[a, b], null, b], address },
  ])
    expect(plainFilter(filter)).toEqual({ filter, leastTopics: 0 })
  expect(plainFilter({ topics: [a, null] })).toEqual({ filter: { topics: [a] }, leastTopics: 2 })
  expect(plainFilter({ topics: [null] })).toEqual({ filter: {}, leastTopics: 1 })
  expect(plainFilter({ topics: [[], [null, a], b], address: [] })).toEqual({
    filter: { topics: [null, null, b] },
    leastTopics: 0,
  })
})

test('logs keep their bytes', () => {
  const text = ' [ {"topics":[], "a":1} ,{"topics": ["x"],  "b": 2}]'
  expect(withTopics(text, 1)).toBe('[{"topics": ["x"],  "b": 2}]')
  expect(withTopics(text, 2)).toBe('[]')
  expect(withTopics('[]', 1)).toBe('[]')
  expect(withTopics('[{"no":1}]', 1)).toBeUndefined()
  expect(withTopics('null', 1)).toBeUndefined()
})
