import { setImmediate as turn } from 'node:timers/promises'
import { systemClock } from '../src/lib/clock.ts'
import { listWalletTransfers } from '../src/storage/transfers/transfers.ts'
import type { BenchDatabase } from './lib/bench-database.ts'
import { startRecordedTracker } from './lib/recorded-tracker.ts'

/** From a block that a node announces to its transfers in the list, in milliseconds, sorted. */
export async function measureLatency(
  database: BenchDatabase,
  size: { blocks: number; transfers: number; addresses: number },
): Promise<number[]> {
  const { db } = database
  const tracker = await startRecordedTracker(db, size)
  const { recorded, network_id, organization_id, wallet_id } = tracker
  const scope = { organization_id, network_id }
  const newest = async () => {
    const [row] = await listWalletTransfers(db, scope, { wallet_id }, { limit: 1 })
    return row?.block_number ?? 0
  }
  const times: number[] = []
  for (let number = 1; number <= size.blocks; number++) {
    const seen = performance.now()
    recorded.advance(number)
    while ((await newest()) < number) await turn()
    times.push(performance.now() - seen)
    await systemClock.sleep(20)
  }
  await tracker.stop()
  // The first blocks pay for everything that is done once.
  return times.slice(10).sort((one, other) => one - other)
}
