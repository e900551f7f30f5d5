import { createEvmChain } from '../src/chains/evm/chain.ts'
import { systemClock } from '../src/lib/clock.ts'
import { silentLog } from '../src/lib/log.ts'
import { findCursor } from '../src/storage/blocks.ts'
import { ensureChain } from '../src/storage/chains.ts'
import { startTracker } from '../src/workers/tracker.ts'
import type { BenchDatabase } from './lib/bench-database.ts'
import { recordChain } from './lib/recorded-chain.ts'
import { registerTracked } from './lib/tracked.ts'

/** What catching up cost. */
export type CatchUp = { events: number; seconds: number; service: number; database: number }

/** Lets a tracker catch up with a recorded chain, until the last balance is read. */
export async function measureCatchUp(
  database: BenchDatabase,
  { blocks, transfers, addresses }: { blocks: number; transfers: number; addresses: number },
): Promise<CatchUp> {
  const { db } = database
  const recorded = recordChain({
    blocks,
    transfers,
    // Spread over all of them by a step that meets each once.
    receiver: (index) => 1_000_000 + ((index * 7_919) % addresses),
  })
  const chain_id = await ensureChain(db, {
    chain: 'c',
    network: 'mainnet',
    create_time: new Date(),
  })
  await registerTracked(db, { chain_id, addresses, contracts: recorded.contracts })
  const chain = createEvmChain({ pool: recorded.pool })
  const tracker = startTracker({
    db,
    clock: systemClock,
    log: silentLog,
    holder: crypto.randomUUID(),
    chain_id,
    network: 'mainnet',
    chain,
  })
  const reaches = async (number: number) => {
    while ((await findCursor(db, chain_id))?.block_number !== number) await systemClock.sleep(20)
  }
  await reaches(0)
  const began = { time: performance.now(), cpu: process.cpuUsage(), database: database.cpu() }
  recorded.advance(blocks)
  await reaches(blocks)
  while (await isDue()) await systemClock.sleep(100)
  const { user, system } = process.cpuUsage(began.cpu)
  const spent = {
    events: blocks * transfers,
    seconds: (performance.now() - began.time) / 1_000,
    service: (user + system) / 1e6,
    database: database.cpu() - began.database,
  }
  await tracker.stop()
  await chain.stop()
  const { count } = await db
    .selectFrom('transfer')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) !== spent.events) throw new Error(`${count} of ${spent.events} transfers`)
  return spent

  async function isDue(): Promise<boolean> {
    const row = await db
      .selectFrom('balance_change')
      .select('chain_id')
      .where('chain_id', '=', chain_id)
      .where('due_block', '<=', blocks)
      .limit(1)
      .executeTakeFirst()
    return row !== undefined
  }
}
