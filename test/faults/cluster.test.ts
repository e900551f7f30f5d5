import { expect, it } from 'vitest'
import { runCluster } from './cluster.ts'

// Three minutes of the same are in `cluster.long.test.ts`, an hour and 200 seeds in `npm run campaign`.
it('a cluster in which everything fails once loses nothing, and only requests on failing processes fail', async () => {
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
