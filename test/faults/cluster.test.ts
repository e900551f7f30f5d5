import { expect, it } from 'vitest'
import { runCluster } from './cluster.ts'
import { makeNextVersion } from './next-version.ts'

it('three minutes in which all parts of a cluster fail and are replaced by a next version: nothing is lost or doubled', async () => {
  await using next = await makeNextVersion()
  const events: string[] = []
  const { counts, ...faults } = await runCluster({
    ...{ seconds: 180, seed: 7, least: 9, next: next.program },
    // Half the load, and half the restarts: other files run beside this one.
    ...{ blockSeconds: 2, slower: 2, pauseMs: 6_000 },
    onEvent: (text) => events.push(text),
  })
  // A request that failed without a reason is among them.
  expect(faults, events.join('\n')).toEqual({
    ...{ failed: [], unexplained: [], lost: [], wrong: [], exceeded: [], lateRevocations: [] },
  })
  // The change of the version, and each kind of disturbance once at least.
  expect(counts.disturbances).toBeGreaterThanOrEqual(10)
  expect(counts.payments).toBeGreaterThan(100)
  expect(counts.sent).toBeGreaterThan(20)
}, 900_000)
