import { expect, test } from 'vitest'
import { runCampaign } from './upstream-faults.ts'

test('no wrong answer and no avoidable failure while nodes fail in every way', async () => {
  const outcome = await runCampaign({
    ...{ requests: 6_000, inFlight: 1_000, seed: 7, first: 'unknown error' },
  })
  expect(outcome).toMatchObject({ wrong: [], failed: [] })
  expect(outcome.latency.worst).toBeLessThan(outcome.latency.bound)
}, 180_000)
