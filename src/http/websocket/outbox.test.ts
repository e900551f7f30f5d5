import { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createOutbox } from './outbox.ts'

/** A socket whose kernel takes as many writes as a test allows. */
const createSocket = () => {
  const taken: string[] = []
  let room = Number.POSITIVE_INFINITY
  let blocked: (() => void) | undefined
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      const take = () => {
        if (chunk.length > 0) {
          taken.push(String(chunk))
          room--
        }
        done()
      }
      if (room > 0) take()
      else blocked = take
    },
  })
  return {
    socket,
    taken,
    allow(count: number) {
      room = count
      const take = blocked
      blocked = undefined
      if (room > 0) take?.()
      else blocked = take
    },
  }
}

const createBox = (limits: { maxNotifications?: number; maxBytes?: number } = {}) => {
  const kernel = createSocket()
  const overflows: string[] = []
  const outbox = createOutbox(kernel.socket, {
    maxNotifications: 10_000,
    maxBytes: 1_000_000,
    ...limits,
    onOverflow: (reason) => overflows.push(reason),
    onEmpty() {},
  })
  return { ...kernel, outbox, overflows }
}
const frame = (value: number | string) => Buffer.from(String(value))

test('what the kernel takes at once is not counted', () => {
  const { outbox, taken } = createBox()
  for (let value = 0; value < 20_000; value++) outbox.notify(frame(value))
  expect(outbox.waiting()).toBe(0)
  expect(taken).toHaveLength(20_000)
})

test('at exactly 10,000 notifications that the kernel did not take it is over', () => {
  const { outbox, overflows, taken, allow } = createBox()
  allow(7)
  for (let value = 0; value < 7 + 9_999; value++) outbox.notify(frame(value))
  expect(taken).toHaveLength(7)
  expect(outbox.waiting()).toBe(9_999)
  expect(overflows).toEqual([])
  outbox.notify(frame('last'))
  expect(overflows).toEqual(['10000 notifications were not read in time'])
  outbox.notify(frame('after'))
  expect(overflows).toHaveLength(1)
})

test('answers are not counted as notifications, but their bytes are', () => {
  const { outbox, overflows, allow } = createBox({ maxNotifications: 3, maxBytes: 100 })
  allow(0)
  for (let value = 0; value < 50; value++) outbox.answer(frame('a'))
  outbox.notify(frame('n'))
  outbox.notify(frame('n'))
  expect(outbox.waiting()).toBe(2)
  expect(overflows).toEqual([])
  outbox.answer(frame('b'.repeat(60)))
  expect(overflows).toEqual(['more than 100 bytes were not read in time'])
})

test('a client that catches up gets everything in order, and the count goes down', async () => {
  const { outbox, taken, allow } = createBox()
  allow(1)
  for (let value = 0; value < 5_000; value++) outbox.notify(frame(value))
  expect(outbox.waiting()).toBe(4_999)
  allow(100)
  for (let left = 20; left > 0; left--) await turn()
  expect(taken.length).toBe(101)
  expect(outbox.waiting()).toBe(4_899)
  allow(Number.POSITIVE_INFINITY)
  for (let left = 200; left > 0; left--) await turn()
  expect(taken).toEqual(Array.from({ length: 5_000 }, (_, value) => String(value)))
  expect(outbox.waiting()).toBe(0)
  expect(outbox.bytes()).toBe(0)
})

test('notifications that are held back count, and come after the answer', () => {
  const { outbox, taken, overflows } = createBox({ maxNotifications: 3 })
  outbox.hold()
  outbox.notify(frame('one'))
  outbox.notify(frame('two'))
  expect(outbox.waiting()).toBe(2)
  outbox.answer(frame('answer'))
  outbox.release()
  expect(taken).toEqual(['answer', 'one', 'two'])
  outbox.hold()
  for (let value = 0; value < 3; value++) outbox.notify(frame(value))
  expect(overflows).toHaveLength(1)
})
