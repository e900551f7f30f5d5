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

test('the highest of the last heads counts, without those of another chain', () => {
  const { a, b, heads, seen } = setUp()
  expect(heads.highest()).toBeUndefined()
  heads.show(a, headOf(100))
  heads.show(b, headOf(50))
  expect(heads.highest()?.number).toBe(100)
  a.isWrongChain = true
  expect(heads.highest()?.number).toBe(50)
  a.isWrongChain = false
  heads.show(a, headOf(49))
  expect(heads.highest()?.number).toBe(50)
  expect(seen).toEqual(['a 100', 'b 50', 'a 49'])
})

test('the head of the first node counts among heads of one height', () => {
  const { a, b, heads } = setUp()
  heads.show(b, { ...headOf(5), hash: '0xother' })
  heads.show(a, headOf(5))
  expect(heads.highest()?.hash).toBe(headOf(5).hash)
})

test('each new head of each node is reported once', () => {
  const { a, b, heads, seen } = setUp()
  for (const number of [7, 7, 8, 7]) heads.show(a, headOf(number))
  heads.show(b, headOf(8))
  expect(seen).toEqual(['a 7', 'a 8', 'a 7', 'b 8'])
})

test('a listener that throws affects no other listener, and a removed one is not called', () => {
  const { a, heads, seen } = setUp()
  heads.onHead(() => {
    throw new Error('mine')
  })
  const late: number[] = []
  const leave = heads.onHead((head) => late.push(head.number))
  heads.show(a, headOf(1))
  leave()
  heads.show(a, headOf(2))
  expect([seen.length, late]).toEqual([2, [1]])
})
