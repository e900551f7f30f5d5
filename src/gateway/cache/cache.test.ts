import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BranchView, createAnswerCache } from './cache.ts'

const maxBytes = 100_000
/** Blocks up to 10 are final; above, the chain has one block per height. */
const view: BranchView = { final: () => 10, hashAt: (number: number) => `hash ${number}` }

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('keep' as const),
      key: fc.nat({ max: 30 }),
      length: fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 8_000 })),
      number: fc.integer({ min: -1, max: 20 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('find' as const), key: fc.nat({ max: 30 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('drop' as const),
      above: fc.integer({ min: -1, max: 20 }),
    }),
  },
)

describe('the cache', () => {
  test('a large answer that was read is not given for another one that takes its place', () => {
    const cache = createAnswerCache({ maxBytes: 2_000_000 })
    const keep = (key: string, result: string, number: number) =>
      cache.keep(key, { result, number, hash: `hash ${number}` }, view)
    const large = (letter: string) => letter.repeat(100_000)
    keep('key', large('a'), 11)
    expect(cache.find('key', view)?.result).toBe(large('a'))
    expect(cache.find('key', view)?.result).toBe(large('a'))
    cache.drop(-1)
    // At the place of the first one.
    keep('key', large('b'), 11)
    expect(cache.find('key', view)?.result).toBe(large('b'))
    // Around the ring and over itself, three times.
    for (let turn = 0; turn < 60; turn++) {
      const letter = String.fromCharCode(97 + (turn % 26))
      keep(`key ${turn}`, large(letter), 12)
      expect(cache.find(`key ${turn}`, view)?.result).toBe(large(letter))
      const before = cache.find(`key ${turn - 1}`, view)?.result
      if (before !== undefined)
        expect(before).toBe(large(String.fromCharCode(97 + ((turn - 1) % 26))))
    }
  })

  test('keeps nothing under a very long key', () => {
    const cache = createAnswerCache({ maxBytes: 16_000_000 })
    for (const length of [65_536, 65_537])
      cache.keep('k'.repeat(length), { result: '1', number: -1, hash: '' }, view)
    expect(cache.size()).toBe(1)
    expect(cache.find('k'.repeat(65_536), view)?.result).toBe('1')
    expect(cache.find('k'.repeat(65_537), view)).toBeUndefined()
  })

  test('returns the stored value or nothing, and stays within its size limit', () => {
    let hits = 0
    let drops = 0
    fc.assert(
      fc.property(fc.array(step, { minLength: 50, maxLength: 300 }), (steps) => {
        const cache = createAnswerCache({ maxBytes })
        const model = new Map<string, { result: string; number: number }>()
        for (const [turn, one] of steps.entries()) {
          if (one.kind === 'keep') {
            const result = `${turn} é `.padEnd(one.length, 'ÿ')
            const { number } = one
            cache.keep(`${one.key}`, { result, number, hash: `hash ${number}` }, view)
            model.set(`${one.key}`, { result, number })
            if (result.length < 5_000) expect(cache.find(`${one.key}`, view)?.result).toBe(result)
          } else if (one.kind === 'find') {
            const found = cache.find(`${one.key}`, view)
            if (!found) continue
            hits++
            expect(found).toMatchObject({ ...model.get(`${one.key}`) })
          } else {
            drops++
            cache.drop(one.above)
            for (const [key, { number }] of model)
              if (one.above < 0 || (number > one.above && number > 10)) {
                expect(cache.find(key, view)).toBeUndefined()
                model.delete(key)
              }
          }
          expect(cache.bytes()).toBeLessThanOrEqual(maxBytes)
        }
      }),
      { numRuns: 200 },
    )
    expect(hits).toBeGreaterThan(100)
    expect(drops).toBeGreaterThan(100)
  })

  test('keeps entries that are used often and evicts the others', () => {
    const cache = createAnswerCache({ maxBytes })
    const keep = (key: string) =>
      cache.keep(key, { result: key.padEnd(500, '.'), number: 1, hash: '' }, view)
    keep('wanted')
    for (let count = 0; count < 5_000; count++) {
      keep(`${count}`)
      expect(cache.find('wanted', view)?.result.startsWith('wanted')).toBe(true)
    }
    expect(cache.find('4999', view)).toBeDefined()
    expect(cache.find('1', view)).toBeUndefined()
    expect(cache.size()).toBeGreaterThan(60)
  })

  test('does not keep one that would push out many', () => {
    const cache = createAnswerCache({ maxBytes })
    cache.keep('small', { result: 'x', number: 1, hash: '' }, view)
    cache.keep('giant', { result: 'x'.repeat(maxBytes / 10), number: 1, hash: '' }, view)
    expect(cache.find('giant', view)).toBeUndefined()
    expect(cache.find('small', view)?.result).toBe('x')
  })

  test('keeps tiny answers within its bound as well', () => {
    const cache = createAnswerCache({ maxBytes })
    for (let count = 0; count < 10_000; count++)
      cache.keep(`${count}`, { result: '1', number: 1, hash: '' }, view)
    expect(cache.bytes()).toBeLessThanOrEqual(maxBytes)
    expect(cache.size()).toBeLessThanOrEqual(maxBytes / 128)
    expect(cache.size()).toBeGreaterThan(maxBytes / 128 / 4)
  })
})
