// Leases with a fencing epoch. Writers that must not overlap check the epoch in their own transaction (`assertLease`), so a
// process that was paused and has lost its lease to another one cannot store anything there.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import { prepared } from '../pg/prepared.ts'

/** The lease was taken by another process: nothing may be written in its name any more. */
export class LeaseLostError extends Error {
  override name = 'LeaseLostError'
  readonly lease: string
  constructor(lease: string, epoch: number) {
    super(`The lease "${lease}" of epoch ${epoch} has passed to another process.`)
    this.lease = lease
  }
}

/** A process that requests or holds a lease; `holder` is the id of the process. */
export type LeaseClaim = { name: string; holder: string; ttl_ms: number }

/** The right to act for a name until it expires; the epoch goes with every write. */
export type Lease = { epoch: number }

// Times are the server's, so that the clocks of the replicas need not agree.
const expiry = (ttl_ms: number) =>
  sql`clock_timestamp() + ${ttl_ms}::float8 * interval '1 millisecond'`

/** A lease that was taken, or for how long another process still holds it. */
export type ClaimedLease = Lease | { epoch?: undefined; remaining_ms: number }

/** Takes a lease that is free, expired or already ours. */
export const claimLease = async (
  db: Db,
  { name, holder, ttl_ms }: LeaseClaim,
): Promise<ClaimedLease> => {
  // Waiting replicas ask often: this look costs the holder no lock and the server no write.
  const held = await sql<{ remaining_ms: number }>`
    select extract(epoch from expire_time - clock_timestamp())::float8 * 1000 as remaining_ms
    from lease
    where name = ${name} and holder <> ${holder}::uuid and expire_time > clock_timestamp()`.execute(
    db,
  )
  if (held.rows[0]) return held.rows[0]
  const taken = await sql<Lease>`
    update lease set epoch = epoch + (holder <> ${holder}::uuid)::int, holder = ${holder}::uuid,
      expire_time = ${expiry(ttl_ms)}
    where name = ${name} and (holder = ${holder}::uuid or expire_time <= clock_timestamp())
    returning epoch`.execute(db)
  if (taken.rows[0]) return taken.rows[0]
  // Two unique indexes: `do nothing` waits for a rival at either, `do update` fails at the second.
  const added = await sql<Lease>`
    insert into lease (name, holder, epoch, expire_time)
    values (${name}, ${holder}::uuid, 1, ${expiry(ttl_ms)})
    on conflict do nothing
    returning epoch`.execute(db)
  // Another one was quicker.
  return added.rows[0] ?? { remaining_ms: ttl_ms }
}

/** Takes a lease like claimLease; undefined while another process holds it. */
export const acquireLease = async (db: Db, claim: LeaseClaim): Promise<Lease | undefined> => {
  const claimed = await claimLease(db, claim)
  return claimed.epoch === undefined ? undefined : claimed
}

/** Keeps a lease; false when another process has taken it. */
export const renewLease = async (
  db: Db,
  { name, holder, ttl_ms, epoch }: LeaseClaim & Lease,
): Promise<boolean> => {
  // It does not wait for the disk: a crash that loses it makes the lease expire earlier, which is safe.
  const { rows } = await sql`
    update lease set expire_time = ${expiry(ttl_ms)}
    where name = ${name} and holder = ${holder}::uuid and epoch = ${epoch}
    returning set_config('synchronous_commit', 'off', true)`.execute(db)
  return rows.length === 1
}

/** Gives a lease back, so that the next process need not wait for it to expire. */
export const releaseLease = async (
  db: Db,
  { name, holder, epoch }: Pick<LeaseClaim, 'name' | 'holder'> & Lease,
): Promise<void> => {
  // The epoch moves on at once: a write of ours that comes late finds the lease gone.
  await sql`
    update lease set expire_time = clock_timestamp(), epoch = epoch + 1
    where name = ${name} and holder = ${holder}::uuid and epoch = ${epoch}`.execute(db)
}

/**
 * Throws LeaseLostError unless the lease is still of this epoch. To be called inside the writer's
 * transaction: the row stays locked against a takeover until that ends. A renewal changes no column
 * of a unique index, so it never waits for a writer; writers that overlap would let it starve. A
 * takeover changes `epoch`, which is part of one (0001-installation.sql), and waits.
 */
export const assertLease = async (trx: Db, name: string, epoch: number): Promise<void> => {
  const { rows } = await sql`${sql.raw(prepared)}
    select 1 from lease where name = ${name} and epoch = ${epoch} for key share`.execute(trx)
  if (rows.length === 0) throw new LeaseLostError(name, epoch)
}
