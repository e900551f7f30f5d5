import { systemClock } from '../src/lib/clock.ts'
import { isBalanceDue } from '../test/helpers/balance-due.ts'
import type { BenchDatabase } from './lib/bench-database.ts'
import { startRecordedTracker } from './lib/recorded-tracker.ts'

/** What catching up cost, in seconds. */
export type CatchUp = { events: number; wall: number; service: number; database: number }

/** Lets a tracker catch up with a recorded chain, until the last balance is read. */
export async function measureCatchUp(
  database: BenchDatabase,
  size: { blocks: number; transfers: number; addresses: number; active?: number },
): Promise<CatchUp> {
  const { db } = database
  const { blocks, transfers } = size
  const { recorded, network_id, reaches, stop } = await startRecordedTracker(db, size)
  const began = { time: performance.now(), cpu: process.cpuUsage(), database: database.cpu() }
  recorded.advance(blocks)
  await reaches(blocks)
  while (await isBalanceDue(db, network_id, blocks)) await systemClock.sleep(250)
  const { user, system } = process.cpuUsage(began.cpu)
  const spent = {
    events: blocks * transfers,
    wall: (performance.now() - began.time) / 1_000,
    service: (user + system) / 1e6,
    database: database.cpu() - began.database,
  }
  await stop()
  const { count } = await db
    .selectFrom('transfer')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) !== spent.events) throw new Error(`${count} of ${spent.events} transfers`)
  return spent
}
