import { expect, test } from 'vitest'
import { silentLog } from '../../../lib/log.ts'
import { createFakeUpstream, headOf } from '../testing/fake-upstream.ts'
import { createHeads } from './heads.ts'

const setUp = () => {
  const upstreams = [createFakeUpstream('a'), createFakeUpstream('b')] as const
  for (const upstream of upstreams) upstream.head = undefined
  const heads = createHeads({ upstreams, log: silentLog })
  const seen: string[] = []
  heads.onHead((head, upstream) => seen.push(`${upstream} ${head.number}`))
  return { a: upstreams[0], b: upstreams[1], heads, seen }
}

test('the highest counts; a node behind never drags it back', () => {
  const { a, b, heads, seen } = setUp()
  heads.show(a, headOf(100), 0)
  heads.show(b, headOf(50), 0)
  expect(heads.best()?.number).toBe(100)
  a.isVerified = false
  heads.show(b, headOf(51), 60_000)
  expect(heads.best()?.number).toBe(100)
  heads.show(b, headOf(101), 90_000)
  expect(heads.best()?.number).toBe(101)
  expect(seen).toEqual(['a 100', 'b 50', 'b 51', 'b 101'])
})

test('each new head of each node is reported once', () => {
  const { a, b, heads, seen } = setUp()
  for (const number of [7, 7, 8, 7]) heads.show(a, headOf(number), 0)
  heads.show(b, headOf(8), 0)
  expect(seen).toEqual(['a 7', 'a 8', 'a 7', 'b 8'])
})

test('it goes back only when the node that showed it has shown less for a while and none has it', () => {
  const { a, b, heads } = setUp()
  heads.show(a, headOf(100), 0)
  heads.show(b, headOf(99), 0)
  heads.show(a, headOf(90), 1_000)
  heads.show(a, headOf(100), 2_000)
  heads.show(a, headOf(90), 3_000)
  heads.show(a, headOf(91), 5_900)
  expect(heads.best()?.number).toBe(100)
  heads.show(a, headOf(92), 6_000)
  expect(heads.best()?.number).toBe(99)
})

test('a rollback is reported, though no node shows a new head', () => {
  const { a, heads } = setUp()
  heads.show(a, headOf(100), 0)
  const notified: (number | undefined)[] = []
  heads.onHead(({ number }) => notified.push(number, heads.best()?.number))
  for (const time of [1_000, 2_000, 3_000, 4_000, 5_000]) heads.show(a, headOf(97), time)
  expect(notified).toEqual([97, 100, 97, 97])
})

test('a moment is not enough, however often it is looked', () => {
  const { a, heads } = setUp()
  heads.show(a, headOf(100), 0)
  for (let time = 1_000; time < 3_900; time += 100) heads.show(a, headOf(97), time)
  expect(heads.best()?.number).toBe(100)
})

test('another block at the same height replaces the one of the same node', () => {
  const { a, b, heads } = setUp()
  heads.show(a, headOf(5), 0)
  const other = { ...headOf(5), hash: '0xother' }
  heads.show(b, other, 0)
  expect(heads.best()?.hash).toBe(headOf(5).hash)
  heads.show(a, other, 0)
  expect(heads.best()?.hash).toBe('0xother')
})

test('a throwing listener affects no other, and a removed one is not called', () => {
  const { a, heads, seen } = setUp()
  heads.onHead(() => {
    throw new Error('mine')
  })
  const late: number[] = []
  const leave = heads.onHead((head) => late.push(head.number))
  heads.show(a, headOf(1), 0)
  leave()
  heads.show(a, headOf(2), 0)
  expect([seen.length, late]).toEqual([2, [1]])
})
