import { expect, it } from 'vitest'
import { runCluster } from './cluster.ts'

it('a cluster loses and doubles nothing while its parts are killed, paused and cut off', async () => {
  const { counts, ...faults } = await runCluster({ seconds: 180, seed: 1 })
  expect(faults).toEqual({
    ...{ failed: [], unexplained: [], lost: [], wrong: [], exceeded: [], lateRevocations: [] },
  })
  expect(counts.disturbances).toBeGreaterThan(10)
  expect(counts.payments).toBeGreaterThan(100)
}, 900_000)

it('a cluster in which everything fails once loses nothing, and every failed request has a reason', async () => {
  const { counts, ...faults } = await runCluster({
    ...{ seconds: 45, seed: 7, pauseMs: 800, least: 8 },
    counts: { gateway: 2, api: 2, tracker: 2, courier: 2, sender: 2 },
  })
  expect(faults).toEqual({
    ...{ failed: [], unexplained: [], lost: [], wrong: [], exceeded: [], lateRevocations: [] },
  })
  // Every kind of disturbance, each once at least.
  expect(counts.disturbances).toBeGreaterThanOrEqual(8)
  expect(counts.payments).toBeGreaterThan(20)
}, 400_000)
