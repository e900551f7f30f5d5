import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PoolOutcome } from '../../chains/evm/pool/pool-types.ts'
import { createFlights, type OnOutcome } from './flights.ts'

const outcome = (result: string): PoolOutcome => ({ ok: true, result })

test('identical calls are one flight, different ones never', () => {
  const step = fc.record({ key: fc.nat({ max: 5 }), isEnd: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const flights = createFlights()
      const open = new Map<string, { end: OnOutcome; waiting: number }>()
      const notified: string[] = []
      const wait = (key: string): OnOutcome => {
        return (given) => notified.push(`${key} ${'result' in given && given.result}`)
      }
      for (const { key: number, isEnd } of steps) {
        const key = `eth_call[${number}]`
        const known = open.get(key)
        if (isEnd && known) {
          notified.length = 0
          known.end(outcome(key))
          expect(notified).toEqual(Array(known.waiting).fill(`${key} ${key}`))
          open.delete(key)
        } else if (!isEnd) {
          const hasJoined = flights.join(key, wait(key))
          expect(hasJoined).toBe(known !== undefined)
          if (known) known.waiting++
          else open.set(key, { end: flights.open(key, wait(key)), waiting: 1 })
        }
        expect(flights.size()).toBe(open.size)
      }
    }),
  )
})

test('a finished flight calls no callback again', () => {
  const flights = createFlights()
  const notified: PoolOutcome[] = []
  const end = flights.open('a', (given) => notified.push(given))
  end(outcome('1'))
  end(outcome('2'))
  expect(notified).toEqual([outcome('1')])
  expect(flights.join('a', () => {})).toBe(false)
})

test('keys that are made to be alike cost no long search, and each has its own answer', () => {
  const flights = createFlights()
  const [before, behind] = ['a'.repeat(600), 'b'.repeat(600)]
  const keys = Array.from({ length: 100 }, (_, index) => `${before}${100 + index}${behind}`)
  const notified: string[] = []
  const ends = keys.map((key) => flights.open(key, (given) => notified.push(JSON.stringify(given))))
  expect(flights.size()).toBe(32)
  expect(keys.filter((key) => flights.join(key, () => {}))).toHaveLength(32)
  for (const [index, end] of ends.entries()) end(outcome(`${index}`))
  expect(notified).toEqual(keys.map((_, index) => JSON.stringify(outcome(`${index}`))))
  expect(flights.size()).toBe(0)
})

test('calls with very long keys are made one by one', () => {
  const flights = createFlights()
  const key = 'a'.repeat(65_537)
  const notified: PoolOutcome[] = []
  const end = flights.open(key, (given) => notified.push(given))
  expect([flights.size(), flights.join(key, () => {})]).toEqual([0, false])
  end(outcome('1'))
  expect(notified).toEqual([outcome('1')])
})
