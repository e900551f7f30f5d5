import { expect, it } from 'vitest'
import { runServiceCampaign } from './service-kill.ts'

it('every request answered with 200 survives kills of the service and of its database', async () => {
  // With this seed: the service, both, the database.
  const outcome = await runServiceCampaign({ kills: 3, seed: 7 })
  expect(outcome.kills).toEqual({ service: 1, both: 1, database: 1 })
  expect(outcome.lost).toBe(0)
  expect(outcome.acknowledged).toBeGreaterThan(4)
}, 120_000)
