import { expect, it } from 'vitest'
import { runCluster } from './cluster.ts'

it('a cluster in which everything fails once loses nothing, and every failed request has a reason', async () => {
  const { counts, ...faults } = await runCluster({ seconds: 20, seed: 7, pauseMs: 800, least: 8 })
  expect(faults).toEqual({
    ...{ failed: [], unexplained: [], lost: [], wrong: [], exceeded: [], lateRevocations: [] },
  })
  // Every kind of disturbance, each once at least.
  expect(counts.disturbances).toBeGreaterThanOrEqual(8)
  expect(counts.payments).toBeGreaterThan(20)
}, 400_000)
