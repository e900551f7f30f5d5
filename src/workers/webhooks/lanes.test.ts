import { expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../storage/webhooks/delivery-claims.ts'
import { createLanes, type PendingDelivery } from './lanes.ts'
import type { Endpoint } from './receivers.ts'

const now = 1_000_000
const queued = (webhook_id: string, organization_id = 'org') => ({
  webhook_id,
  organization_id,
  first_time: new Date(now),
})
const deliveries = (
  webhook_id: string,
  count: number,
  organization_id = 'org',
): PendingDelivery[] =>
  Array.from({ length: count }, (_, sequence) => ({
    claim: { webhook_id, organization_id, sequence, data: '' } as ClaimedDelivery,
    receiver: {} as Endpoint,
  }))
const well = { isWell: true, durationMs: 5, now }
const badly = { isWell: false, durationMs: 5, now }

/** Claims all that the plan allows and starts it. */
const fill = (
  lanes: ReturnType<typeof createLanes>,
  due: ReturnType<typeof queued>[],
  at = now,
) => {
  const wanted = lanes.plan(due, at, { room: 500 })
  const organizations = new Map(due.map((one) => [one.webhook_id, one.organization_id]))
  const claimed = wanted.flatMap(({ webhook_id, count }) =>
    deliveries(webhook_id, count, organizations.get(webhook_id)),
  )
  return { wanted, started: lanes.add(claimed, wanted) }
}

test('a receiver that is fast gets more claimed than is sent at once', () => {
  const lanes = createLanes({ perReceiver: 4, total: 100 })
  const first = fill(lanes, [queued('a')])
  expect(first.wanted).toEqual([{ organization_id: 'org', webhook_id: 'a', count: 4 }])
  expect(first.started).toHaveLength(4)
  for (const delivery of first.started) lanes.finish(delivery, well)
  const second = fill(lanes, [queued('a')])
  expect(second.wanted).toEqual([{ organization_id: 'org', webhook_id: 'a', count: 16 }])
  expect(second.started).toHaveLength(4)
  expect(lanes.held()).toBe(16)
  // What ends lets the next one go, and asks for more when little is left.
  const { next, isHungry } = lanes.finish(second.started[0]!, well)
  expect(next).toHaveLength(1)
  expect(isHungry).toBe(false)
})

test('a receiver that fails gives the rest back, and then gets one at a time after a pause', () => {
  const lanes = createLanes({ perReceiver: 2, total: 100 })
  const warm = fill(lanes, [queued('a')])
  for (const delivery of warm.started) lanes.finish(delivery, well)
  const { started } = fill(lanes, [queued('a')])
  const { dropped, next } = lanes.finish(started[0]!, badly)
  expect(dropped).toHaveLength(6)
  expect(next).toEqual([])
  lanes.finish(started[1]!, badly)
  expect(lanes.held()).toBe(0)
  expect(fill(lanes, [queued('a')]).wanted).toEqual([])
  expect(lanes.resumeTime([queued('a')], now)).toBe(now + 200)
  const probe = fill(lanes, [queued('a')], now + 200)
  expect(probe.wanted).toEqual([{ organization_id: 'org', webhook_id: 'a', count: 1 }])
  expect(fill(lanes, [queued('a')], now + 999).wanted).toEqual([])
  lanes.finish(probe.started[0]!, well)
  expect(fill(lanes, [queued('a')], now + 999).wanted[0]!.count).toBeGreaterThan(1)
})

test('the pause grows to a second and no further', () => {
  const lanes = createLanes({ perReceiver: 1, total: 100 })
  let at = now
  const pauses: number[] = []
  for (let failed = 0; failed < 6; failed++) {
    const [delivery] = fill(lanes, [queued('a')], at).started
    lanes.finish(delivery!, { ...badly, now: at })
    const resume = lanes.resumeTime([queued('a')], at)
    pauses.push(resume - at)
    at = resume
  }
  expect(pauses).toEqual([100, 200, 400, 800, 1_000, 1_000])
})

test('a slow receiver holds a quarter', () => {
  const lanes = createLanes({ perReceiver: 8, total: 100 })
  const { started } = fill(lanes, [queued('a')])
  for (const delivery of started) lanes.finish(delivery, { ...well, durationMs: 10_000 })
  expect(fill(lanes, [queued('a')]).wanted).toEqual([
    { organization_id: 'org', webhook_id: 'a', count: 2 },
  ])
})

test('a slow receiver holds a quarter after all that was due is sent', () => {
  const lanes = createLanes({ perReceiver: 8, total: 100 })
  const wanted = lanes.plan([queued('a')], now, { room: 500 })
  const started = lanes.add(deliveries('a', 3), wanted)
  for (const delivery of started) lanes.finish(delivery, { ...well, durationMs: 10_000 })
  expect(fill(lanes, [queued('a')]).wanted).toEqual([
    { organization_id: 'org', webhook_id: 'a', count: 2 },
  ])
})

test('one organization has half of the room at most, and all of it is a bound', () => {
  const lanes = createLanes({ perReceiver: 10, total: 40 })
  const greedy = Array.from({ length: 10 }, (_, at) => queued(`g${at}`, 'greedy'))
  fill(lanes, greedy)
  expect(lanes.held()).toBe(20)
  const { wanted } = fill(lanes, [...greedy, queued('b', 'modest')])
  expect(wanted).toEqual([{ organization_id: 'modest', webhook_id: 'b', count: 10 }])
  expect(lanes.held()).toBe(30)
})

test('what is not being sent can be taken back whole', () => {
  const lanes = createLanes({ perReceiver: 1, total: 100 })
  const { started } = fill(lanes, [queued('a')])
  lanes.finish(started[0]!, well)
  fill(lanes, [queued('a')])
  expect(lanes.drain()).toHaveLength(3)
  expect(lanes.held()).toBe(1)
  expect(lanes.open()).toBe(1)
})

test('many receivers get their part each, however much one alone could have', () => {
  const lanes = createLanes({ perReceiver: 16, total: 1_000 })
  const many = Array.from({ length: 100 }, (_, at) => queued(`w${at}`, `org${at}`))
  const wanted = lanes.plan(many, now, { room: 500 })
  expect(wanted).toHaveLength(100)
  expect(new Set(wanted.map(({ count }) => count))).toEqual(new Set([5]))
})

test('more receivers than fit are served in turn', () => {
  const lanes = createLanes({ perReceiver: 16, total: 1_000 })
  const many = Array.from({ length: 50 }, (_, at) => queued(`w${at}`, `org${at}`))
  const served = new Set<string>()
  for (let round = 0; round < 60; round++)
    for (const { webhook_id } of lanes.plan(many, now, { room: 10 })) served.add(webhook_id)
  expect(served.size).toBe(50)
})

test('an organization with many webhooks has a turn for each turn of another one', () => {
  const many = Array.from({ length: 300 }, (_, at) => queued(`g${at}`, 'greedy'))
  for (let round = 0; round < 20; round++) {
    const lanes = createLanes({ perReceiver: 4, total: 1_000 })
    const wanted = lanes.plan([...many, queued('m', 'modest')], now, { room: 10 })
    expect(wanted.slice(0, 2).map(({ organization_id }) => organization_id)).toContain('modest')
    const claimed = wanted.flatMap(({ webhook_id, organization_id }) =>
      deliveries(webhook_id, 1, organization_id),
    )
    const started = lanes.add(claimed, wanted)
    expect(started.slice(0, 2).map(({ claim }) => claim.webhook_id)).toContain('m')
  }
})

test('an organization whose attempts wait for the database leaves room to others', () => {
  const lanes = createLanes({ perReceiver: 4, total: 1_000 })
  const roomFor = (organization_id: string) => (organization_id === 'greedy' ? 0 : 500)
  const due = [queued('g', 'greedy'), queued('m', 'modest')]
  const wanted = lanes.plan(due, now, { room: 500, roomFor })
  expect(wanted.map(({ webhook_id }) => webhook_id)).toEqual(['m'])
})

test('what is started of one webhook stays together, in its order', () => {
  const lanes = createLanes({ perReceiver: 4, total: 1_000 })
  const due = [queued('a', 'one'), queued('b', 'one'), queued('c', 'two')]
  const { started } = fill(lanes, due)
  const order = started.map(({ claim }) => claim.webhook_id)
  expect(order.filter((id, at) => id !== order[at - 1])).toHaveLength(3)
  const numbers = started.map(({ claim }) => claim.sequence)
  expect(numbers).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3])
})

test('an organization with large bodies claims no more until some are sent, and delays no other', () => {
  const lanes = createLanes({ perReceiver: 4, total: 100 })
  const wanted = lanes.plan([queued('a', 'large')], now, { room: 100 })
  const claims = deliveries('a', 3, 'large')
  for (const { claim } of claims) claim.data = 'x'.repeat(12 * 1_048_576)
  const [first] = lanes.add(claims, wanted)
  const due = [queued('a', 'large'), queued('b', 'small')]
  expect(lanes.plan(due, now, { room: 100 }).map(({ webhook_id }) => webhook_id)).toEqual(['b'])
  expect(lanes.finish(first!, well).isHungry).toBe(true)
  const after = lanes.plan(due, now, { room: 100 }).map(({ webhook_id }) => webhook_id)
  expect(after.sort()).toEqual(['a', 'b'])
})

test('single deliveries of thousands of webhooks ask for no more when they end', () => {
  const lanes = createLanes({ perReceiver: 4, total: 1_000 })
  const due = Array.from({ length: 50 }, (_, at) => queued(`w${at}`))
  const wanted = lanes.plan(due, now, { room: 500 })
  const claimed = due.flatMap(({ webhook_id }) => deliveries(webhook_id, 1))
  const started = lanes.add(claimed, wanted)
  expect(started).toHaveLength(50)
  expect(started.filter((one) => lanes.finish(one, well).isHungry)).toEqual([])
})

test('deliveries of a claim that was cut by its bytes ask for more', () => {
  const lanes = createLanes({ perReceiver: 4, total: 1_000 })
  const wanted = lanes.plan([queued('a')], now, { room: 500 })
  const started = lanes.add(deliveries('a', 1), wanted, { isCut: true })
  expect(lanes.finish(started[0]!, well).isHungry).toBe(true)
})
