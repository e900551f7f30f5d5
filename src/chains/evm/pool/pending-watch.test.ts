import { expect, test } from 'vitest'
import { createFakeClock } from '../testing/fake-clock.ts'
import { createFakeUpstream, error, result } from '../testing/fake-upstream.ts'
import type { TransportOutcome } from '../transport/transport.ts'
import { watchPending } from './pending-watch.ts'

const hash = (number: number) => `0x${number.toString(16).padStart(64, '0')}`

const setUp = () => {
  const clock = createFakeClock()
  const notified: string[] = []
  let made = 0
  const filters = new Map<string, string[]>()
  const node: { answer: ((method: string) => TransportOutcome | undefined) | undefined } = {
    answer: undefined,
  }
  const watch = watchPending({
    upstream: createFakeUpstream('a'),
    prefix: 'eth',
    clock,
    ask: async (method, params) => {
      const other = node.answer?.(method)
      if (other) return other
      if (method === 'eth_newPendingTransactionFilter') {
        filters.set(`0x${++made}`, [])
        return result(`0x${made}`)
      }
      const gathered = filters.get(JSON.parse(params)[0])
      if (!gathered) return error(-32000, 'filter not found')
      return result(gathered.splice(0))
    },
    notify: (one) => notified.push(one),
  })
  const announce = (one: string) => {
    for (const gathered of filters.values()) gathered.push(one)
  }
  return { clock, notified, filters, node, watch, announce }
}

test('what a filter gathered while the node was unreachable is announced later', async () => {
  const { clock, notified, node, watch, announce } = setUp()
  watch.want(true)
  await watch.begun()
  announce(hash(1))
  node.answer = () => ({ failed: 'timeout', detail: '' })
  await clock.advance(2_000)
  announce(hash(2))
  node.answer = () => error(-32005, 'request rate limited')
  await clock.advance(2_000)
  node.answer = undefined
  await clock.advance(2_000)
  expect(notified).toEqual([hash(1), hash(2)])
  watch.want(false)
})

test('a filter that the node has forgotten is made anew at once', async () => {
  const { clock, notified, filters, watch, announce } = setUp()
  watch.want(true)
  await watch.begun()
  filters.clear()
  await clock.advance(600)
  expect(filters.size).toBe(1)
  announce(hash(1))
  await clock.advance(600)
  expect(notified).toEqual([hash(1)])
  watch.want(false)
})
