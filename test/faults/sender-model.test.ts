import { expect, it } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { runSenderModel } from './sender-model.ts'

const { db } = await freshDatabase()

it.each([1, 2, 3, 4])('no order of events leaves the table of states, seed %i', async (seed) => {
  const outcome = await runSenderModel(db, { seed, steps: 20 })
  expect(outcome.transactions).toBeGreaterThan(5)
  expect(outcome.crashes).toBeGreaterThan(5)
})
