import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { LogFilter } from '../rpc/check-filter.ts'
import { compileLogQuery, keyOfQuery, matchesBlock, matchesKeys } from '../rpc/topics.ts'
import { createLogIndex } from './log-index.ts'

const [a, b, c] = [1, 2, 3].map((value) => `0x${value.toString(16).padStart(64, '0')}`) as [
  string,
  string,
  string,
]
const address = (value: number) => `0x${value.toString(16).padStart(40, '0')}`
const log = (...topics: string[]) => ({ address: address(1), topics })
/** A set that notes each value that is read of it. */
const counted = (values: ReadonlySet<string>, count: () => void): Set<string> => {
  const set = new Set(values)
  set[Symbol.iterator] = function* () {
    for (const value of values) {
      count()
      yield value
    }
    return undefined
  }
  return set
}
const matches = (filter: LogFilter, topics: string[]) =>
  matchesKeys(compileLogQuery(filter), log(...topics))

// The table of spec 4.5, and what geth does beside it.
test.for<[LogFilter['topics'], string[][], string[][]]>([
  [[], [[], [a], [a, b]], []],
  [[a], [[a], [a, c]], [[], [b], [b, a]]],
  [
    [null, b],
    [
      [a, b],
      [c, b, a],
    ],
    [[b], [a, a], []],
  ],
  [
    [a, b],
    [
      [a, b],
      [a, b, c],
    ],
    [[a], [b, a]],
  ],
  [
    [
      [a, b],
      [a, b],
    ],
    [
      [a, b],
      [b, b, c],
    ],
    [
      [a, c],
      [c, a],
    ],
  ],
  [[[]], [[a]], [[]]],
  [[[a, null]], [[c]], [[]]],
  [[null, null], [[a, b]], [[a]]],
])('topics %j', ([topics, yes, no]) => {
  for (const one of yes) expect(matches({ topics: topics ?? [] }, one), `${one}`).toBe(true)
  for (const one of no) expect(matches({ topics: topics ?? [] }, one), `${one}`).toBe(false)
})

test('addresses and topics are compared without regard to case, blocks by range and hash', () => {
  const upper = compileLogQuery({ address: address(0xabc).toUpperCase().replace('0X', '0x') })
  expect(matchesKeys(upper, { address: address(0xabc), topics: [] })).toBe(true)
  const ranged = compileLogQuery({ fromBlock: '0x5', toBlock: '0x7' })
  expect([4, 5, 7, 8].map((number) => matchesBlock(ranged, number, a))).toEqual([
    ...[false, true],
    ...[true, false],
  ])
  expect(matchesBlock(compileLogQuery({ blockhash: a }), 1, b)).toBe(false)
})

test('queries that want the same have the same key', () => {
  const key = (filter: LogFilter) => keyOfQuery(compileLogQuery(filter))
  expect(key({ address: [address(1), address(2)] })).toBe(
    key({ address: [address(2), address(1)] }),
  )
  expect(key({ address: [] })).toBe(key({}))
  expect(key({ topics: [null] })).not.toBe(key({ topics: [] }))
  expect(key({ topics: [a, b] })).not.toBe(key({ topics: [[a, b]] }))
})

test('the index finds exactly what a comparison with every target finds', () => {
  const topic = fc.constantFrom(a, b, c)
  const filters = fc.array(
    fc.record({
      address: fc.uniqueArray(fc.integer({ min: 1, max: 4 }).map(address), { maxLength: 3 }),
      topics: fc.array(fc.oneof(fc.constant(null), topic, fc.uniqueArray(topic)), { maxLength: 4 }),
    }),
    { maxLength: 30 },
  )
  const logs = fc.array(
    fc.record({
      address: fc.integer({ min: 1, max: 4 }).map(address),
      topics: fc.array(topic, { maxLength: 4 }),
    }),
    { maxLength: 20 },
  )
  fc.assert(
    fc.property(filters, logs, fc.nat(), (given, some, removed) => {
      const index = createLogIndex()
      const targets = given.map((filter) => ({ query: compileLogQuery(filter) }))
      for (const target of targets) index.add(target)
      const gone = targets.splice(removed % (targets.length + 1), 3)
      for (const target of gone) index.remove(target)
      expect(index.size()).toBe(targets.length)
      for (const one of some) {
        const found: unknown[] = []
        index.match(one, (target) => found.push(target))
        expect(new Set(found).size).toBe(found.length)
        expect(new Set(found)).toEqual(
          new Set(targets.filter(({ query }) => matchesKeys(query, one))),
        )
      }
      for (const target of targets) index.remove(target)
      expect(index.size()).toBe(0)
    }),
    { numRuns: 500 },
  )
})

test('large targets that are removed match nothing more, and are taken out in turns', async () => {
  const index = createLogIndex<{ query: ReturnType<typeof compileLogQuery> }>()
  let visited = 0
  const targets = Array.from({ length: 20 }, (_, count) => {
    const many = Array.from({ length: 1_000 }, (_, value) => address(count * 500 + value))
    const addresses = counted(new Set(many), () => visited++)
    return { query: { ...compileLogQuery({}), addresses } }
  })
  for (const target of targets) index.add(target)
  const found = () => {
    const all: unknown[] = []
    for (const value of [0, 700, 5_100, 9_999])
      index.match({ address: address(value), topics: [] }, (target) => all.push(target))
    return new Set(all)
  }
  expect(found().size).toBe(6)
  const kept = targets.splice(10, 1)
  visited = 0
  for (const target of targets) index.remove(target)
  expect([index.size(), visited]).toEqual([1, 0])
  expect(found()).toEqual(new Set(kept))
  // As many addresses in each turn as two of them have.
  for (let turns = 1; turns <= 9; turns++) {
    await turn()
    expect(visited).toBe(turns * 2_000)
  }
  await turn()
  expect(visited).toBe(19_000)
  expect(found()).toEqual(new Set(kept))
})

test('a query of a thousand addresses and topics takes a bounded number of places', () => {
  const many = Array.from({ length: 1_000 }, (_, value) => value)
  const topics = many.map((value) => `0x${value.toString(16).padStart(64, '0')}`)
  // Each place is one value that the index reads of the query.
  let places = 0
  const count = () => places++
  const index = createLogIndex()
  for (let added = 0; added < 10; added++) {
    const query = compileLogQuery({ address: many.map(address), topics: [topics, topics] })
    index.add({
      query: {
        ...query,
        addresses: counted(query.addresses!, count),
        topics: query.topics.map((topic) => topic && counted(topic, count)),
      },
    })
  }
  expect(places).toBe(10 * 1_000)
  let found = 0
  index.match({ address: address(5), topics: [topics[1]!, topics[2]!] }, () => found++)
  expect(found).toBe(10)
})

test('with ranges and hashes the same targets are found as by a look at all, wherever the chain goes', async () => {
  const hashOf = (number: number) => `0x${(number % 7).toString(16).padStart(64, '0')}`
  const number = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 6_000 }))
  const query = fc
    .record({
      from: fc.option(number, { nil: undefined }),
      length: fc.option(number, { nil: undefined }),
      hash: fc.oneof(
        { weight: 5, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: 9 }) },
      ),
      address: fc.boolean(),
    })
    .map(({ from, length, hash, address: hasAddress }) => ({
      query: {
        addresses: hasAddress ? new Set([address(1)]) : undefined,
        topics: [],
        from: hash === undefined ? (from ?? 0) : 0,
        to:
          hash === undefined && length !== undefined
            ? (from ?? 0) + length
            : Number.POSITIVE_INFINITY,
        hash: hash === undefined ? undefined : hashOf(hash),
      },
    }))
  const step = fc.oneof(
    { weight: 3, arbitrary: query.map((target) => ({ kind: 'add' as const, target })) },
    { weight: 1, arbitrary: fc.nat().map((at) => ({ kind: 'remove' as const, at })) },
    { weight: 3, arbitrary: number.map((to) => ({ kind: 'jump' as const, to })) },
    {
      weight: 3,
      arbitrary: fc.integer({ min: -3, max: 5 }).map((by) => ({ kind: 'move' as const, by })),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'turn' as const }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const index = createLogIndex<{ query: ReturnType<typeof compileLogQuery> }>()
      const targets: { query: ReturnType<typeof compileLogQuery> }[] = []
      let now = 0
      for (const one of steps) {
        if (one.kind === 'add') {
          targets.push(one.target)
          index.add(one.target)
          continue
        }
        if (one.kind === 'remove') {
          for (const gone of targets.splice(one.at % (targets.length + 1), 1)) index.remove(gone)
          continue
        }
        if (one.kind === 'turn') {
          await turn()
          continue
        }
        now = one.kind === 'jump' ? one.to : Math.max(0, now + one.by)
        const ready = index.reach({ number: now, hash: hashOf(now) })
        if (ready !== true) await ready
        const found: unknown[] = []
        index.match(log(), (target) => found.push(target))
        const wanted = targets.filter(({ query }) => matchesBlock(query, now, hashOf(now)))
        expect(new Set(found).size).toBe(found.length)
        expect(new Set(found)).toEqual(new Set(wanted))
      }
      expect(index.size()).toBe(targets.length)
    }),
    { numRuns: 1_000 },
  )
})

test.each([
  ['begin later', (at: number) => ({ fromBlock: `0x${(2_000 + at).toString(16)}` })],
  ['are over', (at: number) => ({ toBlock: `0x${(1 + (at % 400)).toString(16)}` })],
  [
    'are of other blocks',
    (at: number) => ({ blockHash: `0x${at.toString(16).padStart(64, 'f')}` }),
  ],
])('20,000 subscriptions whose ranges %s cost a block nothing', async (_, filterOf) => {
  const index = createLogIndex()
  let looks = 0
  for (let at = 0; at < 20_000; at++) {
    const query = compileLogQuery(filterOf(at))
    index.add({
      get query() {
        looks++
        return query
      },
    })
  }
  // With the first block those that it does not concern leave, in turns.
  index.reach({ number: 1_799, hash: '0x1' })
  for (let turns = 120; turns > 0; turns--) await turn()
  for (let number = 1_800; number < 1_805; number++) {
    index.reach({ number, hash: '0x1' })
    looks = 0
    for (let count = 0; count < 200; count++) index.match(log(), () => {})
    expect(looks).toBe(0)
  }
})

type Query = ReturnType<typeof compileLogQuery>

/** Targets of 1,000 addresses each, and the number of addresses that the index has read of them. */
const largeTargets = (count: number, organization_id: string, filter: LogFilter = {}) => {
  const visited = { terms: 0 }
  const targets = Array.from({ length: count }, (_, at) => {
    const many = Array.from({ length: 1_000 }, (_, value) => address(at * 1_000 + value))
    const addresses = counted(new Set(many), () => visited.terms++)
    return { query: { ...compileLogQuery(filter), addresses }, organization_id }
  })
  return { targets, visited }
}
const found = (index: ReturnType<typeof createLogIndex<{ query: Query }>>, at: number) => {
  const all = new Set<unknown>()
  index.match({ address: address(at), topics: [] }, (target) => all.add(target))
  return all
}

test('ranges that begin at the same block enter in turns before it comes, organizations in rotation', async () => {
  const index = createLogIndex<{ query: Query; organization_id: string }>()
  index.add({ query: compileLogQuery({ topics: [c] }), organization_id: 'a' })
  await index.reach({ number: 800, hash: a })
  const fromBlock = '0x3e8'
  const first = largeTargets(10, 'a', { fromBlock })
  const second = largeTargets(2, 'b', { fromBlock })
  for (const target of [...first.targets, ...second.targets]) index.add(target)
  await turn()
  expect(first.visited.terms + second.visited.terms).toBe(0)
  for (let number = 900; number < 936; number++) expect(index.reach({ number, hash: a })).toBe(true)
  expect(first.visited.terms + second.visited.terms).toBe(0)
  const seen: number[][] = []
  for (let number = 936; number < 950; number++) {
    expect(index.reach({ number, hash: a })).toBe(true)
    expect(found(index, 1)).toEqual(new Set())
    await turn()
    seen.push([first.visited.terms, second.visited.terms])
  }
  for (const [at, [one, two]] of seen.entries()) {
    const [before = 0, alsoBefore = 0] = seen[at - 1] ?? []
    expect(one! - before + two! - alsoBefore).toBeLessThanOrEqual(2_000)
  }
  expect(seen[3]![1]).toBe(2_000)
  expect(seen.at(-1)).toEqual([10_000, 2_000])
  expect(index.reach({ number: 999, hash: a })).toBe(true)
  expect(found(index, 1)).toEqual(new Set())
  expect(index.reach({ number: 1_000, hash: a })).toBe(true)
  expect(found(index, 1)).toEqual(new Set([first.targets[0], second.targets[0]]))
})

test('a block that comes far ahead of the last one waits until its ranges have entered in turns', async () => {
  const index = createLogIndex<{ query: Query; organization_id: string }>()
  index.add({ query: compileLogQuery({ topics: [c] }), organization_id: 'a' })
  expect(index.reach({ number: 1, hash: a })).toBe(true)
  const { targets, visited } = largeTargets(20, 'a', { fromBlock: '0x3e8', toBlock: '0x3e8' })
  const others = largeTargets(20, 'b', { fromBlock: '0x408' })
  for (const target of [...targets, ...others.targets]) index.add(target)
  const ready = index.reach({ number: 1_000, hash: a })
  expect(ready).toBeInstanceOf(Promise)
  let isReady = false
  void Promise.resolve(ready).then(() => {
    isReady = true
  })
  for (let before = 0; !isReady; before = visited.terms) {
    await turn()
    expect(visited.terms - before).toBeLessThanOrEqual(2_000)
  }
  expect(visited.terms).toBe(20_000)
  for (const at of [0, 5_000, 19_999])
    expect(found(index, at)).toEqual(new Set([targets[Math.floor(at / 1_000)]]))
  while (others.visited.terms < 20_000) await turn()
  // Ranges that are over leave in turns as well.
  expect(index.reach({ number: 2_025, hash: a })).toBe(true)
  expect(visited.terms).toBe(20_000)
  for (let turns = 60; turns > 0; turns--) {
    const before = visited.terms
    await turn()
    expect(visited.terms - before).toBeLessThanOrEqual(2_000)
  }
  expect(visited.terms).toBe(40_000)
  // The chain began anew: what was over comes again.
  await index.reach({ number: 1_000, hash: b })
  expect(visited.terms).toBe(60_000)
  expect(found(index, 19_999)).toEqual(new Set([targets[19]]))
})
