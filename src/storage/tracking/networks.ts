import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** The name of a network: the chain's name and the network of the configuration. */
export type NetworkName = { chain: string; network: string }

const find = async (db: Db, { chain, network }: NetworkName): Promise<number | undefined> => {
  const row = await db
    .selectFrom('network')
    .select('network_id')
    .where('chain', '=', chain)
    .where('network', '=', network)
    .executeTakeFirst()
  return row?.network_id
}

/** The row id of a network. It is assigned at the first start, counts from 1 and never changes. */
export const ensureNetwork = async (
  db: Db,
  { create_time, ...name }: NetworkName & { create_time: Date },
): Promise<number> => {
  const known = await find(db, name)
  if (known !== undefined) return known
  // Two processes may choose the same id: one inserts, the other finds the row or tries again.
  await sql`
    insert into network (network_id, chain, network, create_time, is_traced)
    select coalesce(max(network_id), 0) + 1, ${name.chain}, ${name.network}, ${create_time}, false
    from network
    on conflict do nothing`.execute(db)
  return await ensureNetwork(db, { create_time, ...name })
}

/** The id of a stored network, or of the first one of its chain; undefined when there never was one. */
export const findStoredNetwork = async (
  db: Db,
  chain: string,
  network?: string,
): Promise<number | undefined> => {
  if (network !== undefined) return await find(db, { chain, network })
  const row = await db
    .selectFrom('network')
    .select('network_id')
    .where('chain', '=', chain)
    .orderBy('network_id')
    .executeTakeFirst()
  return row?.network_id
}

/** The networks whose blocks were ever tracked. */
export const listTracked = async (db: Db): Promise<NetworkName[]> =>
  await db
    .selectFrom('network')
    .innerJoin('tracker_cursor', 'tracker_cursor.network_id', 'network.network_id')
    .select(['network.chain', 'network.network'])
    .execute()

/**
 * Stores the identity that nodes report the first time, and returns the stored one. Where one of the `others` has it
 * already nothing is stored, and its name is returned: the first to begin keeps it, whichever process begins it.
 */
export const pinIdentity = (
  db: Db,
  network_id: number,
  identity: string,
  others: readonly NetworkName[] = [],
): Promise<{ identity: string } | { other: NetworkName }> =>
  db.transaction().execute(async (trx) => {
    // Two networks that begin at the same time decide one after the other.
    await sql`lock table network in share row exclusive mode`.execute(trx)
    const rows = await trx
      .selectFrom('network')
      .select(['network_id', 'chain', 'network', 'identity'])
      .where((eb) => eb.or([eb('identity', '=', identity), eb('network_id', '=', network_id)]))
      .execute()
    const pinned = rows.find((row) => row.network_id === network_id)?.identity
    if (pinned) return { identity: pinned }
    const other = rows.find(
      (row) =>
        row.network_id !== network_id &&
        others.some(({ chain, network }) => chain === row.chain && network === row.network),
    )
    if (other) return { other: { chain: other.chain, network: other.network } }
    await trx
      .updateTable('network')
      .set({ identity })
      .where('network_id', '=', network_id)
      .execute()
    return { identity }
  })

/** Whether blocks of this network were ever traced. */
export const findTraced = async (db: Db, network_id: number): Promise<boolean> => {
  const row = await db
    .selectFrom('network')
    .select('is_traced')
    .where('network_id', '=', network_id)
    .executeTakeFirst()
  return row?.is_traced === true
}

/** Remembers that blocks of this network are traced, or that it is given up. */
export const setTraced = async (db: Db, network_id: number, is_traced: boolean): Promise<void> => {
  await sql`update network set is_traced = ${is_traced} where network_id = ${network_id}`.execute(
    db,
  )
}
