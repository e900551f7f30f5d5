import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createCanonical } from '../../chains/evm/canonical/canonical.ts'
import { createFakeClock } from '../../chains/evm/testing/fake-clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { createWorld, type WorldLog } from '../testing/feed-world.ts'
import { createStreams } from './feed-streams.ts'
import { createFilterBudget, type FilterBudget } from './filter-budget.ts'
import { createFilters } from './filters.ts'
import { createLogIndex } from './log-index.ts'
import type { Session } from './session.ts'
import type { LogListener } from './subscriptions.ts'

const owner = { organization_id: 'o', credential_id: 'key' }
const log: WorldLog = { address: `0x${'1'.repeat(40)}`, topics: [] }

/** Filters on a feed that a test moves manually. */
const createBench = (
  limits: {
    maxPerKey?: number
    maxChanges?: number
    maxBytes?: number
    budget?: FilterBudget
    now?: () => number
  } = {},
) => {
  const clock = createFakeClock()
  const index = createLogIndex<LogListener>()
  const needs = { headers: 0, logs: 0, pending: 0 }
  const need = (what: keyof typeof needs) => {
    needs[what]++
    return () => {
      needs[what]--
    }
  }
  const filters = createFilters({
    feed: () => ({ order: () => 1, need, begun: () => true }) as never,
    index,
    pending: { need: () => need('pending'), begun: () => true },
    clock,
    ids: systemIds,
    budget: createFilterBudget({ perKey: 1_000_000, perOrganization: 1_000_000 }),
    maxPerKey: 100,
    ...limits,
  })
  const call = (name: string, args: unknown[] = [], credential_id = 'key') => {
    const session = { principal: { credential_id } } as Session
    let text = ''
    const done = (answer: { text: string }) => {
      text = answer.text
    }
    filters.dispatch({ name: `eth_${name}` } as never, { args } as never, session, done)
    return JSON.parse(text)
  }
  const notify = (text: string, order = 2) =>
    index.match(log, (listener) => listener.notify(text, { order }))
  return { clock, filters, index, needs, call, notify }
}

test('a filter lives for 5 minutes after it was last asked, to the millisecond', async () => {
  const { clock, call, needs, filters } = createBench()
  const id = call('newFilter', [{}])
  await clock.advance(299_999)
  expect(call('getFilterChanges', [id])).toEqual([])
  await clock.advance(299_999)
  expect(call('getFilterChanges', [id])).toEqual([])
  await clock.advance(300_000)
  expect(call('getFilterChanges', [id])).toMatchObject({
    code: -32000,
    message: 'filter not found',
  })
  expect(call('uninstallFilter', [id])).toBe(false)
  call('newBlockFilter')
  call('newPendingTransactionFilter')
  expect(needs).toEqual({ headers: 2, logs: 0, pending: 1 })
  await clock.advance(310_000)
  expect(filters.size()).toBe(0)
  expect(needs).toEqual({ headers: 0, logs: 0, pending: 0 })
})

test('a filter that holds too much is gone, and never has a gap', () => {
  const { call, notify, index } = createBench({ maxChanges: 3 })
  const id = call('newFilter', [{}])
  for (let value = 1; value <= 3; value++) notify(String(value))
  expect(call('getFilterChanges', [id])).toEqual([1, 2, 3])
  for (let value = 1; value <= 4; value++) notify(String(value))
  expect(call('getFilterChanges', [id]).message).toBe('filter not found')
  expect(index.size()).toBe(0)
})

test('the bytes of all filters of a key are bounded together', () => {
  const { call, notify } = createBench({ maxBytes: 100 })
  const first = call('newFilter', [{}])
  const second = call('newFilter', [{}])
  const other = call('newFilter', [{}], 'other')
  notify(`"${'x'.repeat(48)}"`)
  notify('1')
  expect(call('getFilterChanges', [first])).toMatchObject({ code: -32000 })
  expect(call('getFilterChanges', [second])).toHaveLength(2)
  expect(call('getFilterChanges', [other], 'other')).toHaveLength(2)
  notify('2')
  expect(call('getFilterChanges', [second])).toEqual([2])
})

test('a block filter that was not asked for too long is gone', () => {
  const { call, filters } = createBench({ maxChanges: 2 })
  const id = call('newBlockFilter')
  for (const hash of ['0x1', '0x2']) filters.header({ hash } as never)
  expect(call('getFilterChanges', [id])).toEqual(['0x1', '0x2'])
  for (const hash of ['0x3', '0x4', '0x5']) filters.header({ hash } as never)
  expect(call('getFilterChanges', [id]).code).toBe(-32000)
})

test('a key may have so many filters, and others may have theirs', () => {
  const { call } = createBench({ maxPerKey: 2 })
  const id = call('newFilter', [{}])
  call('newBlockFilter')
  expect(call('newFilter', [{}])).toMatchObject({ code: -32005, data: { limit: 2 } })
  expect(call('newFilter', [{}], 'other')).toMatch(/^0x/)
  expect(call('uninstallFilter', [id])).toBe(true)
  expect(call('newFilter', [{}])).toMatch(/^0x/)
})

test('logs of blocks before the filter are not its own, neither added nor removed', () => {
  const { call, notify } = createBench()
  const id = call('newFilter', [{}])
  notify('1', 1)
  expect(call('getFilterChanges', [id])).toEqual([])
})

test('a chain that cannot be followed ends filters and connections instead of leaving a gap', async () => {
  const world = createWorld({ forgets: true })
  const [node] = world.nodes as [(typeof world.nodes)[0]]
  const clock = createFakeClock()
  const streams = createStreams({
    pool: world.pool,
    canonical: createCanonical({ pool: world.pool, prefix: 'eth', clock, log: silentLog }),
    prefix: 'eth',
    clock,
    log: silentLog,
    ids: systemIds,
    encode: (text) => Buffer.from(text),
    subscriptionsPerKey: 1,
    filtersPerKey: 1,
    budget: createFilterBudget({ perKey: 1_000_000, perOrganization: 1_000_000 }),
  })
  const session = { principal: { credential_id: 'key' } } as Session
  const closed: number[] = []
  const client = streams.open({ push() {}, close: (code) => closed.push(code) }, owner)
  const call = { method: 'eth_subscribe', args: ['newHeads'] }
  client.dispatch({ name: 'eth_subscribe' } as never, call as never, session, () => {})
  streams.filters.dispatch(
    { name: 'eth_newBlockFilter' } as never,
    call as never,
    session,
    () => {},
  )
  world.show(node, world.mine(world.genesis))
  await clock.advance(1_000)
  let far = world.genesis
  for (let left = 2_000; left > 0; left--) far = world.mine(far)
  world.show(node, far)
  await clock.advance(5_000)
  expect(closed).toEqual([1013])
  expect(streams.filters.size()).toBe(0)
  expect(streams.feed.tip()?.hash).toBe(far.hash)
  streams.stop()
})

test('what a filter of logs was made with can be read by its key, and keeps it alive', async () => {
  const { clock, call, filters } = createBench()
  const given = { address: log.address, fromBlock: '0x1' }
  const id = call('newFilter', [given])
  const session = { principal: { credential_id: 'key' } } as Session
  const stranger = { principal: { credential_id: 'another' } } as Session
  await clock.advance(200_000)
  expect(filters.filterOf(id, session)).toEqual(given)
  expect(filters.filterOf(id, stranger)).toBeUndefined()
  expect(filters.filterOf(call('newBlockFilter'), session)).toBeUndefined()
  await clock.advance(200_000)
  expect(filters.filterOf(id, session)).toEqual(given)
  await clock.advance(300_000)
  expect(filters.filterOf(id, session)).toBeUndefined()
})

test('a filter whose blocks contradict each other is refused', () => {
  const { call } = createBench()
  expect(call('newFilter', [{ fromBlock: '0x5', toBlock: '0x1' }])).toMatchObject({ code: -32602 })
  const blockHash = `0x${'1'.repeat(64)}`
  expect(call('newFilter', [{ blockHash, toBlock: '0x1' }])).toMatchObject({ code: -32602 })
})

test('an invalid id is reported as not found', () => {
  const { call } = createBench()
  expect(call('uninstallFilter', [''])).toBe(false)
  expect(call('getFilterChanges', [''])).toMatchObject({ code: -32000 })
})

test('a log that is on its way to a filter that ends takes no room of the other filters of its key', () => {
  const { call, notify, index } = createBench({ maxBytes: 100 })
  const ended = call('newFilter', [{}])
  const listeners: LogListener[] = []
  index.match(log, (listener) => listeners.push(listener))
  const other = call('newFilter', [{}])
  expect(call('uninstallFilter', [ended])).toBe(true)
  const text = `"${'x'.repeat(58)}"`
  for (const listener of listeners) listener.notify(text, { order: 2 })
  notify(text)
  expect(call('getFilterChanges', [other])).toHaveLength(1)
})

test('a large filter is made in steps, counts from the first, and is not made when the streams stop meanwhile', async () => {
  const steps: (() => void)[] = []
  const all = createFilterBudget({ perKey: 1_500, perOrganization: 1_500 })
  const budget = {
    ...all,
    inTurn: (_: string, terms: number, act: () => void) =>
      terms > 200 ? void steps.push(act) : act(),
  }
  const { call, filters, index } = createBench({ budget })
  const address = Array.from({ length: 1_000 }, (_, at) => `0x${at.toString(16).padStart(40, '0')}`)
  const answers: { ok: boolean; text: string }[] = []
  const begin = () => {
    const session = { principal: owner } as Session
    const args = [{ address }]
    filters.dispatch({ name: 'eth_newFilter' } as never, { args } as never, session, (answer) => {
      answers.push(answer)
    })
  }
  begin()
  begin()
  expect(answers).toMatchObject([{ ok: false, refusal: { reason: 'TOO_MANY_OPEN' } }])
  while (steps.length > 0) steps.shift()!()
  expect(filters.size()).toBe(1)
  expect(call('uninstallFilter', [JSON.parse(answers[1]!.text)], owner.credential_id)).toBe(true)
  expect([index.size(), all.used().keys.size]).toEqual([0, 0])
  begin()
  filters.stop()
  while (steps.length > 0) steps.shift()!()
  expect(answers[2]).toMatchObject({ ok: false })
  expect([filters.size(), index.size(), all.used().keys.size]).toEqual([0, 0, 0])
})

test('a batch of 32 filters of 190 addresses is made in several turns, in order, and each misses nothing from its answer on', async () => {
  const { filters, index } = createBench()
  let made = 0
  const ids: string[] = []
  const gathered = (id: string): string[] => {
    let text = ''
    const session = { principal: owner } as Session
    const poll = { name: 'eth_getFilterChanges' } as never
    filters.dispatch(poll, { args: [id] } as never, session, (answer) => {
      text = answer.text
    })
    return JSON.parse(text)
  }
  for (let count = 0; count < 32; count++) {
    const address = Array.from(
      { length: 190 },
      (_, at) => `0x${(at + 1_000 * count).toString(16).padStart(40, '0')}`,
    )
    const session = { principal: owner } as Session
    const args = [{ address }]
    filters.dispatch({ name: 'eth_newFilter' } as never, { args } as never, session, (answer) => {
      ids[count] = JSON.parse(answer.text)
      made++
    })
  }
  expect(made).toBe(5)
  const expected: string[][] = Array.from({ length: 32 }, () => [])
  for (let turns = 0; made < 32; turns++) {
    expect(turns).toBeLessThan(32)
    const before = made
    // Each filter that is answered gathers what comes now.
    for (let count = 0; count < 32; count++) {
      const log = { address: `0x${(1_000 * count).toString(16).padStart(40, '0')}`, topics: [] }
      index.match(log, ({ notify }) => notify(`"${turns}"`, { order: 2 }))
      if (ids[count] !== undefined) expected[count]!.push(`${turns}`)
    }
    expect(Object.keys(ids)).toEqual(Array.from({ length: before }, (_, at) => `${at}`))
    await turn()
    expect(made - before).toBeLessThanOrEqual(10)
  }
  expect(ids.map(gathered)).toEqual(expected)
})

test('thousands of filters that expire together are dropped in turns', async () => {
  let time = 0
  const { clock, call, filters, index } = createBench({ maxPerKey: 10_000, now: () => time })
  const remove = index.remove
  for (let count = 0; count < 300; count++) {
    if (count % 50 === 0) await turn()
    call('newFilter', [{}])
  }
  for (let seconds = 0; seconds < 295; seconds += 5) await clock.advance(5_000)
  const sizes: number[] = []
  index.remove = (listener) => {
    time += 0.1
    sizes.push(filters.size())
    remove(listener)
  }
  void clock.advance(5_000)
  for (let before = filters.size(); filters.size() > 0; before = filters.size()) {
    await turn()
    expect(before - filters.size()).toBeLessThan(60)
  }
  expect(sizes).toHaveLength(300)
})
