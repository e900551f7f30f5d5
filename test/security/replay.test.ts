import { expect, it } from 'vitest'
import { runReplays } from './replay.ts'

it('no accepted request is accepted again after a crash or a restore of any kind', async () => {
  const outcome = await runReplays({
    replays: 300,
    seed: 7,
    only: [
      'rows restored in place',
      'dump restored',
      'files copied back',
      'files copied back between services',
      'database killed',
    ],
  })
  expect(outcome.replayed).toBe(0)
  expect(outcome.accepted).toBeGreaterThan(60)
}, 180_000)
