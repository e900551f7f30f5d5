import { expect, it } from 'vitest'
import type { WalletService } from '../../src/contract/variant.ts'
import { freshDatabase } from '../helpers/database.ts'
import { runModel } from './tracker-model.ts'

const { db } = await freshDatabase()

it.each<[service: WalletService, seed: number, steps?: number]>([
  // A gap while readings of a wallet with more than 32 confirmations wait.
  ['c', 1, 50],
  ['c', 2],
  ['c', 3],
  // A removed wallet with more confirmations, and a gap in which an address paid a fee.
  ['c', 1011],
  ['c', 1075],
  // A reorganization that begins below the first stored block, and a balance of a block below that.
  ['c', 196, 40],
  ['t', 4],
  ['s', 5],
  ['p', 6],
])('%s agrees with the model after every step, seed %i', async (service, seed, steps = 30) => {
  const outcome = await runModel(db, { service, seed, steps })
  expect(outcome.compared).toBeGreaterThan(5)
})

it.each<[service: WalletService, seed: number]>([
  ['c', 1011],
  ['s', 12],
  ['p', 6],
])(
  '%s agrees with the model after rewinds below the stored blocks, seed %i',
  async (service, seed) => {
    const outcome = await runModel(db, { service, seed, steps: 24, rewinds: 0.08 })
    expect(outcome.compared).toBeGreaterThan(3)
    expect(outcome.rewinds).toBeGreaterThan(0)
  },
)
