import { expect, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { checkClock } from './machine.ts'

const { db } = await freshDatabase()

test.each([
  [0, 'ok'],
  [-10_000, 'warning'],
  [10_000, 'warning'],
  [200_000, 'failure'],
])('a clock %i ms off is %s', async (offset, status) => {
  const finding = await checkClock(db, 300, () => Date.now() + offset)
  expect(finding.status).toBe(status)
})
