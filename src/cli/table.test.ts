import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { columnsOf, formatRecord, formatTable } from './table.ts'

test('columns are as wide as their widest cell, and nothing trails', () => {
  expect(formatTable(['A', 'LONG'], [['wide cell', 'x'], ['y']])).toBe(
    ['A          LONG', 'wide cell  x', 'y'].join('\n'),
  )
  expect(formatTable(['A', 'B'], [])).toBe('A  B')
})

test('a record is one line per field', () => {
  expect(formatRecord({ a: '1', long: '' })).toBe('a     1\nlong')
})

test('a last column that is too wide for the terminal is wrapped at words', () => {
  const text = 'all that is said of it does not fit into the columns that are left'
  expect(formatTable(['NAME', 'WHAT'], [['one', text]], 40)).toBe(
    [
      'NAME  WHAT',
      'one   all that is said of it does not',
      '      fit into the columns that are left',
    ].join('\n'),
  )
})

test('rows are records where the columns do not fit at all, and nothing is lost', () => {
  const rows = [
    ['8f5ddf2c-0000-4000-8000-000000000000', 'x'.repeat(70), 'a b'],
    ['8f5ddf2c-0000-4000-8000-000000000001', 'y', ''],
  ]
  expect(formatTable(['ID', 'SCOPES', 'NAME'], rows, 60)).toBe(
    [
      'ID      8f5ddf2c-0000-4000-8000-000000000000',
      `SCOPES  ${'x'.repeat(52)}`,
      `        ${'x'.repeat(18)}`,
      'NAME    a b',
      '',
      'ID      8f5ddf2c-0000-4000-8000-000000000001',
      'SCOPES  y',
      'NAME',
    ].join('\n'),
  )
})

test('no line is wider than the terminal, and every word is shown', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 60 })
  const cell = fc.array(word, { maxLength: 6 }).map((words) => words.join(' '))
  const table = fc.integer({ min: 1, max: 6 }).chain((width) =>
    fc.record({
      heading: fc.array(fc.constantFrom('ID', 'NAME'), { minLength: width, maxLength: width }),
      rows: fc.array(fc.array(cell, { minLength: width, maxLength: width }), { maxLength: 4 }),
    }),
  )
  fc.assert(
    fc.property(table, ({ heading, rows }) => {
      const text = formatTable(heading, rows, 80)
      for (const line of text.split('\n')) expect(line.length).toBeLessThan(81)
      const letters = (value: string) => value.replaceAll(/[^ab]/g, '').split('').sort().join('')
      expect(letters(text)).toBe(letters(rows.flat().join('')))
    }),
  )
})

test('only a terminal with a size has a limit', () => {
  const output = new PassThrough()
  expect(columnsOf(output)).toBe(Number.POSITIVE_INFINITY)
  expect(columnsOf(Object.assign(output, { isTTY: true, columns: 0 }))).toBe(
    Number.POSITIVE_INFINITY,
  )
  expect(columnsOf(Object.assign(output, { columns: 80 }))).toBe(80)
})
