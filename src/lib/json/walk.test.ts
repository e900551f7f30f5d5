import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { closingQuote, measureJson } from './walk.ts'

const free = { maxDepth: Number.POSITIVE_INFINITY, maxValues: Number.POSITIVE_INFINITY }

const countOf = (value: unknown): { least: number; depth: number } => {
  if (typeof value !== 'object' || value === null) return { least: 1, depth: 0 }
  const parts = Object.values(value).map(countOf)
  return {
    least: 1 + parts.reduce((sum, { least }) => sum + least, 0),
    depth: 1 + Math.max(0, ...parts.map(({ depth }) => depth)),
  }
}

describe('measuring JSON', () => {
  it('counts no fewer values than parsing builds, and never more than two for each', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { values } = measureJson(JSON.stringify(value), free)
        const { least } = countOf(value)
        expect(values).toBeGreaterThanOrEqual(least)
        expect(values).toBeLessThanOrEqual(2 * least)
      }),
    )
  })

  it('finds depth exactly, whatever stands in strings', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { depth } = countOf(value)
        const text = JSON.stringify(value)
        expect(measureJson(text, { ...free, maxDepth: depth }).beyond).toBeUndefined()
        if (depth > 0)
          expect(measureJson(text, { ...free, maxDepth: depth - 1 }).beyond).toBe('depth')
      }),
    )
  })

  it('stops at the first value beyond the bound', () => {
    const text = `[${'1,'.repeat(1_000_000)}1]`
    expect(measureJson(text, { ...free, maxValues: 10 })).toEqual({ values: 11, beyond: 'values' })
  })

  it('takes any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'[]{}",:\\1 ') }), (text) => {
        expect(measureJson(text, free).values).toBeGreaterThan(0)
      }),
    )
  })
})

it('finds the end of a string as JSON does', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (inside, behind) => {
      const text = JSON.stringify(inside)
      expect(closingQuote(text + behind, 0)).toBe(text.length - 1)
      expect(closingQuote(text.slice(0, -1), 0)).toBe(-1)
    }),
  )
})
