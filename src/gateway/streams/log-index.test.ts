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

test('with ranges and hashes the same targets are found as by a look at all, wherever the chain goes', () => {
  const hashOf = (number: number) => `0x${(number % 7).toString(16).padStart(64, '0')}`
  const number = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 6_000 }))
  const query = fc
    .record({
      from: fc.option(number, { nil: undefined }),
      length: fc.option(number, { nil: undefined }),
      hash: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined, freq: 6 }),
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
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
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
        now = one.kind === 'jump' ? one.to : Math.max(0, now + one.by)
        index.reach({ number: now, hash: hashOf(now) })
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
])('20,000 subscriptions whose ranges %s cost a block nothing', (_, filterOf) => {
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
  for (let number = 1_800; number < 1_805; number++) {
    index.reach({ number, hash: '0x1' })
    looks = 0
    for (let count = 0; count < 200; count++) index.match(log(), () => {})
    expect(looks).toBe(0)
  }
})
