import { expect, it } from 'vitest'
import { runServiceCampaign } from './service-kill.ts'

it('every request answered with 200 survives kills of the service and of its database', async () => {
  const outcome = await runServiceCampaign({ kills: 4, seed: 7 })
  expect(outcome.lost).toBe(0)
  expect(outcome.acknowledged).toBeGreaterThan(4)
}, 120_000)
