import { expect, test } from 'vitest'
import { formatRecord, formatTable } from './table.ts'

test('columns are as wide as their widest cell, and nothing trails', () => {
  expect(formatTable(['A', 'LONG'], [['wide cell', 'x'], ['y']])).toBe(
    ['A          LONG', 'wide cell  x', 'y'].join('\n'),
  )
  expect(formatTable(['A', 'B'], [])).toBe('A  B')
})

test('a record is one line per field', () => {
  expect(formatRecord({ a: '1', long: '' })).toBe('a     1\nlong')
})
