import { randomBytes, randomUUID, randomUUIDv7 } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { WalletService } from '../../src/contract/variant.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import {
  startTracker,
  type Tracker,
  type TrackerOptions,
} from '../../src/workers/tracker/tracker.ts'
import { isBalanceDue } from './balance-due.ts'
import type { FreshDatabase } from './database.ts'
import { waitFor } from './wait-for.ts'
import { type Caller, createWalletBench, type WalletBench } from './wallets.ts'

/** A wallet service on a scripted chain, with trackers that stop after the test. */
export type TrackedBench = {
  bench: WalletBench
  caller: Caller
  start(options?: Partial<TrackerOptions>): Tracker
}

let networks = 0

/** What tests of trackers do on a database. */
export const createTrackedBenches = ({ db, pool }: Pick<FreshDatabase, 'db' | 'pool'>) => ({
  /** Makes a chain of its own with a first caller. */
  startBench: async (service: WalletService): Promise<TrackedBench> => {
    const network = `net-${networks++}`
    const bench = await createWalletBench(db, service, { network })
    const caller = await bench.createCaller()
    const start = (options?: Partial<TrackerOptions>) => {
      const tracker = startTracker({
        db,
        clock: systemClock,
        log: silentLog,
        holder: randomUUID(),
        name: { chain: service, network },
        network_id: bench.network_id,
        chain: bench.chain,
        ttlMs: 1_000,
        ...options,
      })
      onTestFinished(tracker.stop)
      return tracker
    }
    return { bench, caller, start }
  },

  /** Waits until the tracker is at the head and no balance is due. */
  settled: async ({ chain, network_id }: WalletBench): Promise<void> => {
    const head = chain.canonical().at(-1)!
    await waitFor('the tracker is at the head', async () => {
      const cursor = await findCursor(db, network_id)
      return cursor?.block_hash.equals(head.hash) === true
    })
    await waitFor(
      'no balance is due',
      async () => !(await isBalanceDue(db, network_id, head.number)),
    )
  },

  addWebhook: async (bench: WalletBench, caller: Caller, confirmation: number): Promise<string> => {
    const webhook_id = randomUUIDv7()
    await pool.query(
      `insert into webhook (webhook_id, organization_id, network_id, webhook_endpoint, confirmation,
         webhook_state, secret_sealed, next_sequence, create_time, update_time)
       values ($1, $2, $3, 'https://example.org', $4, 'WEBHOOK_STATE_ENABLED', $5, 1, now(), now())`,
      [webhook_id, caller.organization_id, bench.network_id, confirmation, randomBytes(8)],
    )
    return webhook_id
  },

  /** The notifications of a webhook, in order. */
  notified: async (webhook_id: string) =>
    (
      await pool.query(
        'select sequence, data from delivery where webhook_id = $1 and sequence is not null order by 1',
        [webhook_id],
      )
    ).rows,
})

/** All pages of ListTransfers. */
export const listAll = async (caller: Caller, request: object) => {
  const found = []
  let page_token = ''
  do {
    const page = await caller.call('ListTransfers', {
      page_size: 2,
      ...request,
      ...(page_token && { page_token }),
    })
    found.push(...page.transfers)
    page_token = page.pagination.next_page_token
  } while (page_token)
  return found
}
