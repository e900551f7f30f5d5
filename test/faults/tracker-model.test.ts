import { expect, it } from 'vitest'
import type { WalletService } from '../../src/contract/variant.ts'
import { freshDatabase } from '../helpers/database.ts'
import { runModel } from './tracker-model.ts'

const { db } = await freshDatabase()

it.each<[WalletService, number]>([
  ['c', 1],
  ['c', 2],
  ['c', 3],
  // A removed wallet with more confirmations, and a gap in which an address paid a fee.
  ['c', 1011],
  ['c', 1075],
  ['t', 4],
  ['s', 5],
  ['p', 6],
])('%s agrees with the model after every step, seed %i', async (service, seed) => {
  const outcome = await runModel(db, { service, seed, steps: 30 })
  expect(outcome.compared).toBeGreaterThan(5)
})
