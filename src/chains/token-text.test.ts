import { expect, it } from 'vitest'
import { readDecimals, readTokenText } from './token-text.ts'

it('keeps of a text what can be stored and shown', () => {
  expect(readTokenText('A\u0000B\u202eC\n')).toBe('ABC')
  expect(readTokenText('half \ud83d')).toBe('half \ufffd')
  expect(readTokenText('Ü '.repeat(400))).toHaveLength(799)
})

it('knows no text where there is none, or one that is too long', () => {
  for (const text of [null, undefined, '', '\u0000\u0000', ' ', 'x'.repeat(1_001)])
    expect(readTokenText(text)).toBeNull()
})

it('knows no decimals that an application could not use', () => {
  const given = [0, 9, 255, 256, 40_000, -1, 1.5, Number.NaN, null, undefined]
  expect(given.map(readDecimals)).toEqual([0, 9, 255, ...Array(7).fill(null)])
})
