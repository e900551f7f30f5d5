import { expect, test } from 'vitest'
import { blocksOf } from './document-blocks.ts'
import { read } from './expressions.ts'

// `production.long.test.ts` runs the blocks.
const blocks = blocksOf(read('docs/production.md'))

test('every block of the document is run, or says why not', () => {
  const shown = blocks.filter(({ notRun }) => notRun !== undefined)
  const run = blocks.filter(({ notRun }) => notRun === undefined)
  expect(run.map(({ language }) => language)).toEqual(run.map(() => 'sh'))
  expect([run.length, shown.length]).toEqual([12, 3])
})
