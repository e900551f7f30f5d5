import { afterEach, expect, it, vi } from 'vitest'
import { runReplays } from './replay.ts'

afterEach(() => vi.unstubAllEnvs())

it('an event that cannot be run is counted as such, and fails in CI', async () => {
  const without = { replays: 1, seed: 7, only: ['dump restored'] as const }
  const findSystem = async () => undefined
  vi.stubEnv('CI', '')
  const said: string[] = []
  const outcome = await runReplays({ ...without, findSystem, onRound: (text) => said.push(text) })
  expect(outcome).toEqual({
    ...{ accepted: 0, replays: 0, replayed: 0, events: [], not_run: ['dump restored'] },
  })
  expect(said).toEqual([expect.stringMatching(/^not run: dump restored .*pg_dump/)])
  vi.stubEnv('CI', 'true')
  await expect(runReplays({ ...without, findSystem })).rejects.toThrow(/pg_dump/)
})

it('no accepted request is accepted again after a crash or a restore', async () => {
  const outcome = await runReplays({
    replays: 60,
    seed: 7,
    // A crash after a restore once let replays through. The campaign has all kinds.
    only: ['rows restored in place', 'files copied back', 'database killed'],
  })
  expect(outcome.replayed).toBe(0)
  expect(outcome.accepted).toBeGreaterThan(20)
}, 180_000)
