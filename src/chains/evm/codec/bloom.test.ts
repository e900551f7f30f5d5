import { hash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type BloomLog, bloomOf, createBloomCheck, isBloom, isEmptyBloom } from './bloom.ts'

/** The bloom as the yellow paper defines it, bit by bit. */
const expectedBloom = (logs: readonly BloomLog[]): string => {
  let bloom = 0n
  for (const item of logs.flatMap(({ address, topics }) => [address, ...topics])) {
    const digest = hash('keccak-256', Buffer.from(item.slice(2), 'hex'), 'buffer')
    for (const at of [0, 2, 4]) bloom |= 1n << BigInt(digest.readUInt16BE(at) % 2048)
  }
  return `0x${bloom.toString(16).padStart(512, '0')}`
}
const hex = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((value) => `0x${Buffer.from(value).toString('hex')}`)
const log = fc.record({ address: hex(20), topics: fc.array(hex(32), { maxLength: 4 }) })
const logList = fc.array(log, { maxLength: 20 })
const { fits, covers } = createBloomCheck(10)

test('the bloom of any logs is that of the definition', () => {
  fc.assert(
    fc.property(logList, (logs) => {
      const expected = expectedBloom(logs)
      expect(`0x${bloomOf(logs).toString('hex')}`).toBe(expected)
      expect([isBloom(expected), isEmptyBloom(expected)]).toEqual([true, logs.length === 0])
      expect([fits(expected, logs), covers(expected, logs)]).toEqual([true, true])
    }),
  )
})

test('a missing log is found, and a surplus log is covered', () => {
  fc.assert(
    fc.property(logList, log, (logs, other) => {
      const whole = expectedBloom([...logs, other])
      fc.pre(whole !== expectedBloom(logs))
      expect([fits(whole, logs), covers(whole, logs)]).toEqual([false, false])
      const part = expectedBloom(logs)
      expect([fits(part, [...logs, other]), covers(part, [...logs, other])]).toEqual([false, true])
    }),
  )
})

test('one item sets at most three bits', () => {
  const bits = [...bloomOf([{ address: `0x${'00'.repeat(20)}`, topics: [] }])]
  expect(bits.reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0)).toBe(3)
})

test.each(['', '0x', '0x00'])('%o is not a bloom', (text) => {
  expect([isBloom(text), fits(text, []), covers(text, [])]).toEqual([false, false, false])
})
