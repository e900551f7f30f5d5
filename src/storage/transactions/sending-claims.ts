// Which process checks the transactions of an address. A claim that is not renewed expires by the clock of the server, so that
// another process continues after a crash. What a process that was paused does late is harmless: attempts have a number.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** A process that claims addresses of a network; `holder` is its id. */
export type SendingHolder = { network_id: number; holder: string }

const expiry = (ttl_ms: number) =>
  sql`clock_timestamp() + ${ttl_ms}::float8 * interval '1 millisecond'`

/** Claims those of the addresses that no other process holds, and answers them. */
export const claimAddresses = async (
  db: Db,
  { network_id, holder, ttl_ms }: SendingHolder & { ttl_ms: number },
  addresses: readonly Buffer[],
): Promise<Buffer[]> => {
  // In one order, so that two processes with the same addresses do not wait for each other.
  const { rows } = await sql<{ from: Buffer }>`
    insert into sending_claim as c (network_id, "from", holder, expire_time)
    select ${network_id}, address, ${holder}::uuid, ${expiry(ttl_ms)}
    from unnest(${addresses as Buffer[]}::bytea[]) as address order by address
    on conflict (network_id, "from") do update
      set holder = excluded.holder, expire_time = excluded.expire_time
      where c.holder = excluded.holder or c.expire_time <= clock_timestamp()
    returning "from"`.execute(db)
  return rows.map(({ from }) => from)
}

/** Keeps the claims of a process; false when one of them was lost. */
export const renewClaims = async (
  db: Db,
  { network_id, holder, ttl_ms }: SendingHolder & { ttl_ms: number },
  addresses: readonly Buffer[],
): Promise<boolean> => {
  // It does not wait for the disk: a crash that loses it makes the claim expire earlier, which is safe.
  const { rows } = await sql`
    update sending_claim set expire_time = ${expiry(ttl_ms)}
    where network_id = ${network_id} and holder = ${holder}::uuid
      and "from" = any(${addresses as Buffer[]}::bytea[])
    returning set_config('synchronous_commit', 'off', true)`.execute(db)
  return rows.length === addresses.length
}

/** Gives back all claims of a process on a network, and removes those that processes left behind when they were killed. */
export const releaseClaims = async (
  db: Db,
  { network_id, holder }: SendingHolder,
): Promise<void> => {
  await sql`
    delete from sending_claim
    where network_id = ${network_id}
      and (holder = ${holder}::uuid or expire_time < clock_timestamp() - interval '1 minute')`.execute(
    db,
  )
}
