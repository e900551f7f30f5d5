import { styleText } from 'node:util'
import { expect, test } from 'vitest'
import { fitLines } from './fit-lines.ts'

test('pieces share lines up to the width, and a longer one has its own', () => {
  expect(fitLines(['aa', 'bb', 'cc'], 5)).toEqual(['aa bb', 'cc'])
  expect(fitLines(['aa', 'bb'], 5, '  ')).toEqual(['aa', 'bb'])
  expect(fitLines(['a', 'b'.repeat(9), 'c'], 5)).toEqual(['a', 'b'.repeat(9), 'c'])
  expect(fitLines([], 5)).toEqual([])
})

test('colours take no room', () => {
  const red = styleText('red', 'aa', { validateStream: false })
  expect(red.length).toBeGreaterThan(5)
  expect(fitLines([red, 'bb'], 5)).toEqual([`${red} bb`])
})
