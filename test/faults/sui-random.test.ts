import { expect, it } from 'vitest'
import { runSuiRandom } from './sui-random.ts'

it('records and gas of random transactions are exactly what the balances changed by', async () => {
  const outcome = await runSuiRandom({ count: 150, seed: 3 })
  expect(outcome.transactions).toBe(150)
  expect(outcome.failed).toBeGreaterThan(10)
  expect(outcome.refunds).toBeGreaterThan(0)
})
