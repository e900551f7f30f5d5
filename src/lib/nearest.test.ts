import fc from 'fast-check'
import { expect, it } from 'vitest'
import { editDistance, findNearest } from './nearest.ts'

it.each([
  ['prot', ['host', 'port'], 'port'],
  ['PORTOLAN_SERVER__PRT', ['PORTOLAN_PORT', 'PORTOLAN_SERVER__PORT'], 'PORTOLAN_SERVER__PORT'],
  ['Host', ['host'], 'host'],
  ['x', ['c', 'q'], undefined],
  ['something', ['else'], undefined],
  ['', ['a'], undefined],
])('%s', (word, candidates, meant) => {
  expect(findNearest(word, candidates)).toBe(meant)
})

it('editDistance is symmetric, and zero for equal words only', () => {
  const word = fc.string({ maxLength: 8 })
  fc.assert(
    fc.property(word, word, (a, b) => {
      expect(editDistance(a, b)).toBe(editDistance(b, a))
      expect(editDistance(a, b) === 0).toBe(a === b)
    }),
  )
})
