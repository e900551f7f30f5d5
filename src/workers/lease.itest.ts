import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../test/helpers/database.ts'
import { waitFor } from '../../test/helpers/wait-for.ts'
import { systemClock } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { startLeased } from './lease.ts'

const { db } = await freshDatabase()

it('hands work over within a second when its holder stops by plan', async () => {
  const waits: number[] = []
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => {
      waits.push(ms)
      return systemClock.sleep(ms, signal)
    },
  }
  const start = (given = systemClock) => {
    const leased = startLeased({
      ...{ db, clock: given, log: silentLog, name: 'hand-over', holder: randomUUID() },
      // Longer than the test: only a lease that is given back can pass to the other process.
      ttlMs: 600_000,
      run: (_lease, signal) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    })
    onTestFinished(leased.stop)
    return leased
  }
  const first = start()
  await waitFor('the first leads', () => first.state() === 'leading')
  const second = start(clock)
  await waitFor('the second waits', () => waits.length > 0)
  // How long it takes on an idle machine: the longest pause and two statements.
  expect(Math.max(...waits)).toBeLessThanOrEqual(500)
  await first.stop()
  await waitFor('the second leads', () => second.state() === 'leading')
})
