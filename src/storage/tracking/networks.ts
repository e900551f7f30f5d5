import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** The name of a network: the chain's tag and the network of the configuration. */
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

/** The id of the network of this chain that was there first; undefined when there never was one. */
export const findFirstNetwork = async (db: Db, chain: string): Promise<number | undefined> => {
  const row = await db
    .selectFrom('network')
    .select('network_id')
    .where('chain', '=', chain)
    .orderBy('network_id')
    .executeTakeFirst()
  return row?.network_id
}

/** Stores the identity that nodes report the first time, and returns the stored one. */
export const pinIdentity = async (
  db: Db,
  network_id: number,
  identity: string,
): Promise<string> => {
  const { rows } = await sql<{ identity: string }>`
    update network set identity = coalesce(identity, ${identity}) where network_id = ${network_id}
    returning identity`.execute(db)
  return rows[0]?.identity ?? identity
}

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
