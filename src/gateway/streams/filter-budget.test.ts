import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { createCanonical } from '../../chains/evm/canonical/canonical.ts'
import { createFakeClock } from '../../chains/evm/testing/fake-clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { createWorld } from '../testing/feed-world.ts'
import { createStreams } from './feed-streams.ts'
import { createFilterBudget, termsOf } from './filter-budget.ts'
import type { Session } from './session.ts'

const address = (value: number) => `0x${value.toString(16).padStart(40, '0')}`
const topic = (value: number) => `0x${value.toString(16).padStart(64, '0')}`

describe('the terms of a filter', () => {
  it.each([
    [{}, 10],
    [{ address: null, topics: null }, 10],
    [{ address: address(1) }, 11],
    [{ address: [address(1), address(1)], topics: [topic(1), null, [topic(2), null]] }, 15],
  ])('%j', (filter, terms) => expect(termsOf(filter)).toBe(terms))
})

test('a key and an organization have a budget each, and the refusal names it', () => {
  const budget = createFilterBudget({ perKey: 100, perOrganization: 150 })
  const [a, b] = ['a', 'b'].map((credential_id) => ({ organization_id: 'o', credential_id }))
  const first = budget.take(a!, 90)
  expect(budget.take(a!, 11)).toMatchObject({
    reason: 'TOO_MANY_OPEN',
    error: expect.stringContaining('"budget":"filter_terms_per_key"'),
  })
  expect(budget.take(b!, 61)).toMatchObject({
    error: expect.stringContaining('"budget":"filter_terms_per_organization"'),
  })
  expect(budget.take(b!, 60)).toBeTypeOf('function')
  expect(budget.take({ organization_id: 'p', credential_id: 'c' }, 100)).toBeTypeOf('function')
  if (typeof first !== 'function') throw new Error('refused')
  first()
  first()
  expect(budget.used().keys).toEqual(
    new Map([
      ['b', 60],
      ['c', 100],
    ]),
  )
  expect(budget.used().organizations).toEqual(
    new Map([
      ['o', 60],
      ['p', 100],
    ]),
  )
})

const owners = ['k1', 'k2', 'k3'].map((credential_id, at) => ({
  credential_id,
  organization_id: at < 2 ? 'o1' : 'o2',
  role: 'ROLE_MEMBER' as const,
}))
const filter = fc
  .record({ addresses: fc.integer({ min: 0, max: 30 }), topics: fc.integer({ min: 0, max: 30 }) })
  .map(({ addresses, topics }) => ({
    address: Array.from({ length: addresses }, (_, at) => address(at)),
    topics: [Array.from({ length: topics }, (_, at) => topic(at))],
  }))
const who = fc.nat(2)
const step = fc.oneof(
  fc.record({ kind: fc.constant('open' as const), who }),
  fc.record({ kind: fc.constant('close' as const), at: fc.nat() }),
  fc.record({
    kind: fc.constant('subscribe' as const),
    at: fc.nat(),
    name: fc.constantFrom('logs', 'logs', 'newHeads', 'newPendingTransactions', 'syncing', 'none'),
    filter,
    resume: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined, freq: 4 }),
  }),
  fc.record({ kind: fc.constant('unsubscribe' as const), at: fc.nat(), which: fc.nat() }),
  fc.record({
    kind: fc.constant('filter' as const),
    who,
    name: fc.constantFrom('newFilter', 'newBlockFilter', 'newPendingTransactionFilter'),
    filter,
  }),
  fc.record({ kind: fc.constant('uninstall' as const), who, which: fc.nat() }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(10, 1_000, 6_000, 310_000) }),
  fc.record({ kind: fc.constant('mine' as const), far: fc.boolean() }),
)

test('whatever clients, filters and nodes do, the budget is what is open: nothing leaks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), async (steps, isThere) => {
      const world = createWorld({ forgets: true })
      const [node] = world.nodes as [(typeof world.nodes)[0]]
      const clock = createFakeClock()
      const budget = createFilterBudget({ perKey: 120, perOrganization: 180 })
      const streams = createStreams({
        pool: world.pool,
        canonical: createCanonical({ pool: world.pool, prefix: 'eth', clock, log: silentLog }),
        ...{ prefix: 'eth', clock, log: silentLog, ids: systemIds },
        encode: (text) => Buffer.from(text),
        ...{ subscriptionsPerKey: 5, filtersPerKey: 4, budget },
      })
      let tip = world.genesis
      const mine = () => {
        tip = world.mine(tip)
        world.show(node, tip)
      }
      if (isThere) mine()
      const connect = (owner: (typeof owners)[0]) => {
        const connection = {
          owner,
          isOpen: true,
          ids: [] as string[],
          client: streams.open({ push() {}, close: () => disconnect() }, owner),
        }
        const disconnect = () => {
          connection.isOpen = false
          connection.client.stop()
        }
        return { ...connection, connection, disconnect }
      }
      const connections: ReturnType<typeof connect>[] = []
      const filters: string[] = []
      const check = () => {
        for (const terms of budget.used().keys.values()) {
          expect(terms).toBeGreaterThan(0)
          expect(terms).toBeLessThanOrEqual(120)
        }
        for (const terms of budget.used().organizations.values()) {
          expect(terms).toBeGreaterThan(0)
          expect(terms).toBeLessThanOrEqual(180)
        }
        const sum = (map: ReadonlyMap<string, number>) =>
          [...map.values()].reduce((a, b) => a + b, 0)
        const { keys, organizations } = budget.used()
        expect(sum(keys)).toBe(sum(organizations))
        // Each that is open has at least its own part.
        const open = streams.subscriptions.size() + streams.filters.size()
        expect(sum(keys)).toBeGreaterThanOrEqual(10 * open)
      }
      for (const one of steps) {
        const at = 'at' in one ? connections[one.at % (connections.length || 1)] : undefined
        if (one.kind === 'open') connections.push(connect(owners[one.who]!))
        else if (one.kind === 'close') at?.disconnect()
        else if (one.kind === 'subscribe' && at?.connection.isOpen) {
          const resume =
            one.resume === undefined ? {} : { resume: one.resume ? tip.hash : topic(9) }
          const args = [one.name, { ...(one.name === 'logs' && one.filter), ...resume }]
          const session = { principal: at.owner } as Session
          at.client.dispatch(
            { name: 'eth_subscribe' } as never,
            { method: 'eth_subscribe', args } as never,
            session,
            ({ ok, text }) => ok && at.ids.push(JSON.parse(text)),
          )
        } else if (one.kind === 'unsubscribe' && at) {
          const args = [at.ids[one.which % (at.ids.length || 1)]]
          const session = { principal: at.owner } as Session
          at.client.dispatch(
            { name: 'eth_unsubscribe' } as never,
            { args } as never,
            session,
            () => {},
          )
        } else if (one.kind === 'filter' || one.kind === 'uninstall') {
          const isNew = one.kind === 'filter'
          const name = `eth_${isNew ? one.name : 'uninstallFilter'}`
          const args = [isNew ? one.filter : filters[one.which % (filters.length || 1)]]
          const session = { principal: owners[one.who] } as Session
          streams.filters.dispatch(
            { name } as never,
            { args } as never,
            session,
            ({ ok, text }) => {
              if (isNew && ok) filters.push(JSON.parse(text))
            },
          )
        } else if (one.kind === 'wait') await clock.advance(one.ms)
        else if (one.kind === 'mine') for (let left = one.far ? 1_100 : 1; left > 0; left--) mine()
        check()
      }
      await clock.advance(100)
      check()
      for (const { disconnect } of connections) disconnect()
      await clock.advance(330_000)
      expect(streams.subscriptions.size()).toBe(0)
      expect(streams.filters.size()).toBe(0)
      expect(budget.used().keys.size + budget.used().organizations.size).toBe(0)
      streams.stop()
    }),
    { numRuns: 40 },
  )
})

test('steps of large filters have a turn each, organizations in rotation, and small ones do not wait', async () => {
  const { inTurn } = createFilterBudget({ perKey: 1, perOrganization: 1 })
  const done: string[] = []
  for (const name of ['a1', 'a2', 'a3', 'b1'])
    inTurn(name.charAt(0), 1_000, () => {
      done.push(name)
    })
  inTurn('a', 100, () => {
    done.push('small')
  })
  expect(done).toEqual(['small'])
  const seen: string[] = []
  for (let left = 4; left > 0; left--) {
    await turn()
    seen.push(done.slice(1).join())
  }
  expect(seen).toEqual(['a1', 'a1,b1', 'a1,b1,a2', 'a1,b1,a2,a3'])
})

test('small filters beyond 2,000 terms of steps in one turn wait for the next, organizations in rotation', async () => {
  const { inTurn } = createFilterBudget({ perKey: 1, perOrganization: 1 })
  const done: string[] = []
  const make = (name: string) => inTurn(name.charAt(0), 200, () => done.push(name))
  for (let count = 0; count < 25; count++) make(`a${count}`)
  make('b0')
  expect(done.splice(0)).toEqual([...Array.from({ length: 10 }, (_, at) => `a${at}`), 'b0'])
  for (let count = 1; count < 15; count++) make(`b${count}`)
  expect(done.splice(0)).toEqual(Array.from({ length: 9 }, (_, at) => `b${at + 1}`))
  await turn()
  const both = Array.from({ length: 5 }, (_, at) => [`a${at + 10}`, `b${at + 10}`]).flat()
  expect(done.splice(0)).toEqual(both)
  await turn()
  expect(done).toEqual(Array.from({ length: 10 }, (_, at) => `a${at + 15}`))
})
