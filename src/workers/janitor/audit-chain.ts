// Moves audit events from `audit_pending` into the hash chain `audit_event` (docs/audit.md). One process does
// it, by a lease: writers of events never wait for each other or for a hash. Each batch is one transaction,
// so a crash leaves either no event of it or all of them with a signed head.

import { auditKeyContext } from '../../domain/audit/key-context.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Sealer } from '../../storage/access/seal.ts'
import {
  deleteOldAuditEvents,
  findAuditChain,
  hasPendingEvents,
  insertAuditChain,
  insertAuditEvents,
  lockAuditChain,
  putPendingEvents,
  takePendingEvents,
  updateAuditChain,
} from '../../storage/audit/audit.ts'
import {
  type ChainPlace,
  genesisHash,
  hashDetail,
  hashEvent,
  makeChainKeys,
  signPlace,
} from '../../storage/audit/hash.ts'
import type { AuditEventRow, PendingAuditRow } from '../../storage/audit/tables.ts'
import type { Db } from '../../storage/pg/database.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import { type HeldLease, startLeased } from '../lease.ts'

/** What the chain of the audit log is kept with. */
export type AuditChainOptions = {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  sealer: Sealer
  /** An id of this process. */
  holder: string
  /** How long events are kept. */
  keepMs: number
  batch?: number
  intervalMs?: number
  /** An event without a result after this time was cut off by a crash. */
  unknownAfterMs?: number
  pruneEveryMs?: number
  /** How often the head is logged while it moves. */
  headEveryMs?: number
}

/** Moves events into the chain, in one process at a time, and removes those that are too old. */
export function startAuditChain(options: AuditChainOptions): { stop(): Promise<void> } {
  const { db, clock, log, holder, keepMs } = options
  const { batch = 500, intervalMs = 500, unknownAfterMs = 120_000 } = options
  const { pruneEveryMs = 3_600_000, headEveryMs = 300_000 } = options

  const run = async (lease: HeldLease, signal: AbortSignal, works: () => void): Promise<void> => {
    await ensureChain(options)
    let pruneAt = 0
    // Every start appends to the chain; a line for each of them would say nothing new.
    let headAt = clock.now() + headEveryMs
    // The newest head that was not logged yet.
    let head: ChainPlace | undefined
    while (!signal.aborted) {
      const now = clock.now()
      const before = new Date(now - unknownAfterMs)
      const chained = await chainEvents(options, { lease, before, limit: batch })
      works()
      head = chained.head ?? head
      if (head && now >= headAt) {
        logHead(log, head)
        head = undefined
        headAt = now + headEveryMs
      }
      if (now >= pruneAt) {
        pruneAt = now + pruneEveryMs
        await pruneEvents(options, { lease, before: new Date(now - keepMs), signal })
      }
      // A full batch means a backlog: continue without a pause.
      if (chained.count < batch) await clock.sleep(intervalMs, signal).catch(() => {})
    }
    if (head) logHead(log, head)
  }
  return startLeased({ db, clock, log, name: 'audit chain', holder, run })
}

// The log is kept elsewhere than the database: compared with it, a chain that was cut at its end shows.
const logHead = (log: Log, { sequence, hash }: ChainPlace): void =>
  log.info({ event: 'audit_head', head: `${sequence}:${hash.toString('hex')}` }, 'audit log head')

type Work = Pick<AuditChainOptions, 'db' | 'clock' | 'ids' | 'sealer'>

/** Appends one batch to the chain and signs its new head; all of it or nothing. */
export async function chainEvents(
  work: Work,
  { lease, before, limit }: { lease?: HeldLease; before: Date; limit: number },
): Promise<{ count: number; head?: ChainPlace }> {
  const { db, clock, ids, sealer } = work
  // Asked twice a second in every installation: a transaction for nothing would be most of what an idle
  // service sends to its database.
  if (!(await hasPendingEvents(db, before))) return { count: 0 }
  await ensureChain(work)
  return await db.transaction().execute(async (trx) => {
    // Fencing: a paused process whose lease was taken over must not append a second branch.
    if (lease) await assertLease(trx, lease.name, lease.epoch)
    // Oldest first; events without a result are left until `before`.
    const pending = await takePendingEvents(trx, { before, limit })
    if (pending.length === 0) return { count: 0 }
    const chain = await lockAuditChain(trx)
    if (!chain) throw new Error('The audit chain is missing.')
    const private_key = sealer.open(chain.private_key_sealed, auditKeyContext)
    let last: ChainPlace = { sequence: chain.head_sequence, hash: chain.head_hash }
    const rows = pending.map((event) => {
      const row = link(last, event, ids.bytes(16))
      last = { sequence: row.sequence, hash: row.hash }
      return row
    })
    // One signature per batch is enough: the hashes link all earlier events to it.
    const signature = signPlace(private_key, 'head', last)
    rows.at(-1)!.signature = signature
    await insertAuditEvents(trx, rows)
    await updateAuditChain(trx, {
      head_sequence: last.sequence,
      head_hash: last.hash,
      head_time: new Date(clock.now()),
      head_signature: signature,
    })
    return { count: rows.length, head: last }
  })
}

/** Removes events from the beginning of the chain, page by page, each with a signed anchor. */
export async function pruneEvents(
  work: Work,
  {
    lease,
    before,
    signal,
    limit = 2_000,
  }: { lease?: HeldLease; before: Date; signal?: AbortSignal; limit?: number },
): Promise<number> {
  const { db, clock, ids, sealer } = work
  let first: number | undefined
  let last: number | undefined
  while (!signal?.aborted) {
    const removed = await db.transaction().execute(async (trx) => {
      if (lease) await assertLease(trx, lease.name, lease.epoch)
      const chain = await lockAuditChain(trx)
      if (!chain) return undefined
      const place = await deleteOldAuditEvents(trx, { before, limit })
      if (!place) return undefined
      const private_key = sealer.open(chain.private_key_sealed, auditKeyContext)
      // The purpose is part of the signed text: a head cannot be passed off as an anchor.
      await updateAuditChain(trx, {
        anchor_sequence: place.sequence,
        anchor_hash: place.hash,
        anchor_time: new Date(clock.now()),
        anchor_signature: signPlace(private_key, 'anchor', place),
      })
      return { from: chain.anchor_sequence + 1, to: place.sequence }
    })
    if (!removed) break
    // One page per transaction: a year of events in one would hold the lock of the chain while requests are recorded.
    first ??= removed.from
    last = removed.to
  }
  if (first === undefined || last === undefined) return 0
  // The removal is an event itself, with the range, so that a shortened chain can be explained.
  const target = { from_sequence: first, to_sequence: last }
  await putPendingEvents(db, [
    {
      event_id: ids.uuid(),
      event_time: new Date(clock.now()),
      actor_type: 'ACTOR_TYPE_SERVICE',
      ...{
        credential_id: null,
        role: null,
        principal_organization_id: null,
        organization_id: null,
      },
      ...{ service: 'service', operation: 'PruneAuditEvents' },
      ...{ result: 'AUDIT_RESULT_SUCCEEDED', reason: null, event_count: 1 },
      detail: JSON.stringify({ target }),
    },
  ])
  return last - first + 1
}

function link(previous: ChainPlace, event: PendingAuditRow, detail_salt: Buffer): AuditEventRow {
  const unhashed = {
    ...event,
    // The process died between the event and its result.
    result: event.result ?? ('AUDIT_RESULT_UNKNOWN' as const),
    sequence: previous.sequence + 1,
    detail_salt,
    detail_hash: hashDetail(detail_salt, event.detail),
    signature: null,
  }
  return { ...unhashed, hash: hashEvent(previous.hash, unhashed) }
}

// Inserted only if there is none: two processes may begin at once, and the first one keeps its keys.
async function ensureChain({ db, clock, sealer }: Work): Promise<void> {
  if (await findAuditChain(db)) return
  const { public_key, private_key } = makeChainKeys()
  const place = { sequence: 0, hash: genesisHash }
  const time = new Date(clock.now())
  await insertAuditChain(db, {
    id: 1,
    public_key,
    private_key_sealed: sealer.seal(private_key, auditKeyContext),
    anchor_sequence: 0,
    anchor_hash: genesisHash,
    anchor_time: time,
    anchor_signature: signPlace(private_key, 'anchor', place),
    head_sequence: 0,
    head_hash: genesisHash,
    head_time: time,
    head_signature: signPlace(private_key, 'head', place),
  })
}
