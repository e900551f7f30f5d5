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
