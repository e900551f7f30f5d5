// The sender: broadcasts signed transactions of a network, repeats them until they are mined, and expires those that were
// never signed. Several processes share the addresses that have something due; an address is with one of them at a time.
// It uses storage and the chain. After a crash at any point exactly one transaction is on the chain.

import type { Chain } from '../../chains/chain.ts'
import type { Sending } from '../../chains/sending.ts'
import { moveTransaction } from '../../domain/transactions/move.ts'
import { withTransaction } from '../../domain/transactions/scope.ts'
import { distinctBytes, keyOf } from '../../lib/bytes.ts'
import type { Clock } from '../../lib/clock.ts'
import { lowestId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { createOutage } from '../../lib/outage.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { NetworkName } from '../../storage/tracking/networks.ts'
import {
  countOnTheWay,
  listDueBroadcasts,
  listDueOfEach,
  listUnsigned,
} from '../../storage/transactions/open.ts'
import { stuckAfterMs } from '../../storage/transactions/record.ts'
import {
  claimAddresses,
  releaseClaims,
  renewClaims,
} from '../../storage/transactions/sending-claims.ts'
import type { LeasedState } from '../lease.ts'
import { checkTransaction, type SenderTools } from './check-transaction.ts'

/** What a sender is made of. */
export type SenderOptions = {
  db: Db
  clock: Clock
  log: Log
  /** An id of this process. */
  holder: string
  network_id: number
  /** The names of the chain and the network, for the log. */
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

// Bounds of one round: rows that are listed, addresses that are claimed, and nodes that are asked at once. A process leaves
// the addresses beyond the second to others.
const rowsPerRound = 100
const addressesPerRound = 16
const atOnce = 8
// Pages that other processes work on already. What is due behind them waits for the next round.
const pagesPerRound = 8
// Expiry is a matter of hours, so a look per minute is enough.
const expireEveryMs = 60_000
// As a lease (../lease.ts): another process continues within this time and a little more.
const usualTtlMs = 3_000
const firstPauseMs = 250
const lastPauseMs = 10_000

/**
 * Checks the transactions that are on their way: repeats what a crash or a silent node left open, sends again what a node
 * may have forgotten, and finds out who used a nonce. What becomes of them on the chain is the tracker's to see.
 */
export function startSender(options: SenderOptions): Sender {
  const { db, clock, log, holder, network_id, name, chain, pollMs = 1_000 } = options
  const { createdExpiryMs, ttlMs = usualTtlMs } = options
  const tools = { db, clock, log, network_id, sending: chain.sending }
  const claim = { network_id, holder, ttl_ms: ttlMs }
  const stopping = new AbortController()
  let state: SenderStatus['state'] = 'waiting'
  // The organization that the last round ended with.
  let after: string = lowestId

  /** A page of what is due: the longest waiting, or where more is due, a share of each organization. */
  const listDue = async (except: readonly Buffer[]) => {
    const page = { network_id, now: new Date(clock.now()), limit: rowsPerRound, except }
    const oldest = await listDueBroadcasts(db, page)
    const isFull = oldest.length === rowsPerRound
    const shares = isFull ? await listDueOfEach(db, { ...page, after }) : []
    return { due: shares.length > 0 ? shares : oldest, isFull }
  }

  const pause = (ms: number, signal: AbortSignal) => clock.sleep(ms, signal).catch(() => {})

  /** What is due of addresses that no other process works on, with the addresses claimed. */
  const claimDue = async () => {
    const elsewhere: Buffer[] = []
    for (let page = 0; page < pagesPerRound; page++) {
      const { due, isFull } = await listDue(elsewhere)
      if (due.length === 0) break
      const all = distinctBytes(due.map(({ from }) => from))
      const some = all.slice(0, addressesPerRound)
      const addresses = await claimAddresses(db, claim, some)
      const mine = new Set(addresses.map(keyOf))
      const rows = due.filter(({ from }) => mine.has(keyOf(from)))
      const isMore = isFull || all.length > some.length
      const last = keyOf(some.at(-1)!)
      after = due.find(({ from }) => keyOf(from) === last)!.organization_id
      if (rows.length > 0) return { rows, addresses, isMore }
      elsewhere.push(...some)
    }
    return undefined
  }

  /** Renews the claims until the signal; calls `lose` when another process may have them. */
  const keep = async (addresses: readonly Buffer[], signal: AbortSignal, lose: () => void) => {
    let renewed = clock.now()
    while (!signal.aborted) {
      await pause(ttlMs / 3, signal)
      if (signal.aborted) return
      const kept = await renewClaims(db, claim, addresses).catch(() => undefined)
      if (kept) renewed = clock.now()
      if (kept === false || clock.now() - renewed > ttlMs) return lose()
    }
  }

  /** Says whether more is due. */
  const round = async (): Promise<boolean> => {
    const claimed = await claimDue()
    if (!claimed) return false
    const ending = new AbortController()
    const signal = AbortSignal.any([stopping.signal, ending.signal])
    const keeping = keep(claimed.addresses, signal, () => ending.abort())
    const next = claimed.rows.values()
    // All workers share one iterator, so each row is taken once and a slow one delays only its
    // worker.
    const work = async () => {
      for (const row of next) {
        if (signal.aborted) return
        await checkTransaction(tools, row, signal)
      }
    }
    try {
      await Promise.all(Array.from({ length: Math.min(atOnce, claimed.rows.length) }, work))
    } finally {
      ending.abort()
      await keeping
      await releaseClaims(db, claim)
    }
    return claimed.isMore
  }

  /** Repeats work after the pauses that it answers, and after growing ones while it fails. */
  const repeat = async (
    words: { begins: string; ends: string },
    work: () => Promise<number>,
    see: (state: SenderStatus['state']) => void = () => {},
  ): Promise<void> => {
    const outage = createOutage({ ...words, log, now: clock.now })
    let retryMs = firstPauseMs
    while (!stopping.signal.aborted) {
      try {
        const pauseMs = await work()
        see('leading')
        outage.recovered()
        retryMs = firstPauseMs
        if (pauseMs > 0) await pause(pauseMs, stopping.signal)
      } catch (error) {
        if (stopping.signal.aborted) return
        see('failing')
        outage.failed(error, { chain: name.chain, network: name.network, retry_ms: retryMs })
        await pause(retryMs, stopping.signal)
        retryMs = Math.min(retryMs * 2, lastPauseMs)
      }
    }
  }

  const sending = repeat(
    { begins: 'sending failed, will retry', ends: 'sending continues' },
    async () => ((await round()) ? 0 : pollMs),
    (seen) => {
      state = seen
    },
  )
  // Beside the rounds: nodes that do not answer must not delay it.
  let expireTime = 0
  const expire = async (expiryMs: number): Promise<number> => {
    const now = clock.now()
    if (now < expireTime) return pollMs
    const isMore = await expireUnsigned(tools, expiryMs, stopping.signal)
    if (!isMore) expireTime = now + expireEveryMs
    return isMore ? 0 : pollMs
  }
  const expiring =
    createdExpiryMs !== undefined &&
    repeat(
      {
        begins: 'expiring transactions failed, will retry',
        ends: 'expiring transactions continues',
      },
      async () => await expire(createdExpiryMs),
    )

  return {
    status: async () => {
      const sentBefore = new Date(clock.now() - stuckAfterMs)
      const counts = await countOnTheWay(db, network_id, sentBefore).catch(() => undefined)
      return { state, ...counts }
    },
    stop: async () => {
      stopping.abort(new Error('stopping'))
      await Promise.all([sending, expiring])
    },
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
  let handled = 0
  let expired = 0
  for (const { organization_id, transaction_id } of rows) {
    if (signal.aborted) return false
    const scope = { organization_id, network_id }
    try {
      await withTransaction(tools, scope, transaction_id, async (trx, row, now) => {
        // Signed or canceled since it was listed, or expired by another sender.
        if (row.transaction_state !== 'TRANSACTION_STATE_CREATED') return row
        expired++
        return await moveTransaction(trx, row, { event: 'expire', now, change: { last_error } })
      })
      handled++
    } catch (error) {
      // One that fails must not keep the sender from its other work.
      log.warn({ err: error, transaction_id }, 'expiring transactions failed')
    }
  }
  if (expired > 0) log.info({ network_id, count: expired }, 'unsigned transactions expired')
  return handled === expiredPerRound
}
