// The sender: one leased loop per network that broadcasts signed transactions, repeats them until they are
// mined, and expires those that were never signed. It uses storage and the chain. After a crash at any point
// exactly one transaction is on the chain.

import type { Chain } from '../../chains/chain.ts'
import type { Sending } from '../../chains/sending.ts'
import { moveTransaction } from '../../domain/transactions/move.ts'
import { withTransaction } from '../../domain/transactions/scope.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { NetworkName } from '../../storage/tracking/networks.ts'
import { countOnTheWay, listDueBroadcasts, listUnsigned } from '../../storage/transactions/open.ts'
import { stuckAfterMs } from '../../storage/transactions/record.ts'
import { type LeasedState, startLeased } from '../lease.ts'
import { checkTransaction, type SenderTools } from './check-transaction.ts'

/** What a sender is made of. */
export type SenderOptions = {
  db: Db
  clock: Clock
  log: Log
  /** An id of this process. */
  holder: string
  network_id: number
  /** The names of the chain and the network, for the lease. */
  name: NetworkName
  chain: Chain & { sending: Sending }
  ttlMs?: number
  pollMs?: number
  /** After that long without a signature a transaction is canceled; undefined means never. */
  createdExpiryMs?: number | undefined
}

/** A sender of one chain and network. */
export type Sender = { status(): Promise<SenderStatus>; stop(): Promise<void> }

/** The state of a sender, for `/status`; the counts are missing while the database is. */
export type SenderStatus = { state: LeasedState; open?: number; stuck?: number }

// Bounds of one round: rows that are listed, and nodes that are asked at once.
const rowsPerRound = 100
const atOnce = 8
// Expiry is a matter of hours, so a look per minute is enough.
const expireEveryMs = 60_000

/**
 * Checks the transactions that are on their way, in one process at a time: repeats what a crash
 * or a silent node left open, sends again what a node may have forgotten, and finds out who used a
 * nonce. What becomes of them on the chain is the tracker's to see.
 */
export function startSender(options: SenderOptions): Sender {
  const { db, clock, log, holder, network_id, name, chain, ttlMs, pollMs = 1_000 } = options
  const { createdExpiryMs } = options
  const tools = { db, clock, log, network_id, sending: chain.sending }

  const run = async (_: unknown, signal: AbortSignal, works: () => void): Promise<void> => {
    let expireTime = 0
    while (!signal.aborted) {
      const due = await listDueBroadcasts(db, {
        network_id,
        now: new Date(clock.now()),
        limit: rowsPerRound,
      })
      const next = due.values()
      // All workers share one iterator, so each row is taken once and a slow one delays only its
      // worker.
      const work = async () => {
        for (const row of next) {
          if (signal.aborted) return
          await checkTransaction(tools, row, signal)
        }
      }
      await Promise.all(Array.from({ length: Math.min(atOnce, due.length) }, work))
      if (createdExpiryMs !== undefined && clock.now() >= expireTime) {
        const isMore = await expireUnsigned(tools, createdExpiryMs, signal)
        expireTime = isMore ? 0 : clock.now() + expireEveryMs
      }
      works()
      // A full page means that more is due: the next round starts at once.
      if (due.length < rowsPerRound) await clock.sleep(pollMs, signal).catch(() => {})
    }
  }
  const leased = startLeased({
    db,
    clock,
    log,
    holder,
    name: `sender:${name.chain}:${name.network}`,
    run,
    ...(ttlMs !== undefined && { ttlMs }),
  })
  return {
    status: async () => {
      const sentBefore = new Date(clock.now() - stuckAfterMs)
      const counts = await countOnTheWay(db, network_id, sentBefore).catch(() => undefined)
      return { state: leased.state(), ...counts }
    },
    stop: leased.stop,
  }
}

const expiredPerRound = 100
const hourMs = 3_600_000

/**
 * Cancels what was created and never signed, so that it does not keep its nonce for ever. Says whether
 * more is left.
 */
export async function expireUnsigned(
  tools: Pick<SenderTools, 'db' | 'clock' | 'log' | 'network_id'>,
  expiryMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { db, clock, log, network_id } = tools
  const before = new Date(clock.now() - expiryMs)
  const rows = await listUnsigned(db, { network_id, before, limit: expiredPerRound })
  const last_error = `Canceled: no signature came within ${Math.round(expiryMs / hourMs)} hours.`
  let expired = 0
  for (const { organization_id, transaction_id } of rows) {
    if (signal.aborted) return false
    const scope = { organization_id, network_id }
    try {
      await withTransaction(tools, scope, transaction_id, async (trx, row, now) =>
        // Signed or canceled since it was listed.
        row.transaction_state === 'TRANSACTION_STATE_CREATED'
          ? await moveTransaction(trx, row, { event: 'expire', now, change: { last_error } })
          : row,
      )
      expired++
    } catch (error) {
      // One that fails must not keep the sender from its other work.
      log.warn({ err: error, transaction_id }, 'expiring transactions failed')
    }
  }
  if (expired > 0) log.info({ network_id, count: expired }, 'unsigned transactions expired')
  return expired === expiredPerRound
}
