import { expect, it } from 'vitest'
import { runReplays } from './replay.ts'

it('no accepted request is accepted again after a crash or a restore', async () => {
  const outcome = await runReplays({
    replays: 120,
    seed: 7,
    // A crash after a restore once let replays through. The campaign has all kinds.
    only: ['rows restored in place', 'files copied back', 'database killed'],
  })
  expect(outcome.replayed).toBe(0)
  expect(outcome.accepted).toBeGreaterThan(20)
}, 180_000)
