import { randomUUIDv7 } from 'node:crypto'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { ensureNetwork } from '../../src/storage/tracking/networks.ts'
import { startTracker } from '../../src/workers/tracker/tracker.ts'
import { type RecordedChain, recordChain } from './recorded-chain.ts'
import { registerTracked } from './tracked.ts'

/** A tracker on a recorded chain, at its first block. */
export type RecordedTracker = {
  recorded: RecordedChain
  network_id: number
  organization_id: string
  wallet_id: string
  /** Waits until this block is stored. */
  reaches(number: number): Promise<void>
  stop(): Promise<void>
}

/** Records a chain, registers the addresses and starts a tracker. */
export async function startRecordedTracker(
  db: Db,
  {
    blocks,
    transfers,
    addresses,
    active = addresses,
  }: {
    blocks: number
    transfers: number
    addresses: number
    /** How many of them receive something, spread over all. */
    active?: number
  },
): Promise<RecordedTracker> {
  const apart = Math.floor(addresses / active)
  const recorded = recordChain({
    blocks,
    transfers,
    // Spread by a step that has nothing in common with their number: some come again, most do not.
    receiver: (index) => 1_000_000 + (((index * 7_919) ^ (index >> 3)) % active) * apart,
  })
  const create_time = new Date()
  const network_id = await ensureNetwork(db, { chain: 'c', network: 'mainnet', create_time })
  const { contracts } = recorded
  const owner = await registerTracked(db, { network_id, addresses, contracts })
  const chain = createEvmChain({ pool: recorded.pool })
  const tracker = startTracker({
    db,
    clock: systemClock,
    log: silentLog,
    holder: randomUUIDv7(),
    network_id,
    name: { chain: 'c', network: 'mainnet' },
    chain,
  })
  // Asked of the tracker: statements of the measuring itself would be counted as its work.
  const reaches = async (number: number) => {
    while (tracker.status().block_number !== number) await systemClock.sleep(20)
  }
  await reaches(0)
  return {
    recorded,
    network_id,
    ...owner,
    reaches,
    stop: async () => {
      await tracker.stop()
      await chain.stop()
    },
  }
}
