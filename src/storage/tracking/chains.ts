import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** One network of one chain, as rows name it. */
export type ChainName = { chain: string; network: string }

const find = async (db: Db, { chain, network }: ChainName): Promise<number | undefined> => {
  const row = await db
    .selectFrom('chain')
    .select('chain_id')
    .where('chain', '=', chain)
    .where('network', '=', network)
    .executeTakeFirst()
  return row?.chain_id
}

/** The id of a chain, which it gets at its first start and keeps; ids count from 1. */
export const ensureChain = async (
  db: Db,
  { create_time, ...name }: ChainName & { create_time: Date },
): Promise<number> => {
  const known = await find(db, name)
  if (known !== undefined) return known
  // Two processes may count the same next id; one inserts, the other finds it or counts again.
  await sql`
    insert into chain (chain_id, chain, network, create_time, is_traced)
    select coalesce(max(chain_id), 0) + 1, ${name.chain}, ${name.network}, ${create_time}, false
    from chain
    on conflict do nothing`.execute(db)
  return await ensureChain(db, { create_time, ...name })
}

/** The id of the network of this chain that was there first; undefined when there never was one. */
export const findFirstChain = async (db: Db, chain: string): Promise<number | undefined> => {
  const row = await db
    .selectFrom('chain')
    .select('chain_id')
    .where('chain', '=', chain)
    .orderBy('chain_id')
    .executeTakeFirst()
  return row?.chain_id
}

/** Stores what the nodes say they are the first time, and tells what was stored. */
export const pinIdentity = async (db: Db, chain_id: number, identity: string): Promise<string> => {
  const { rows } = await sql<{ identity: string }>`
    update chain set identity = coalesce(identity, ${identity}) where chain_id = ${chain_id}
    returning identity`.execute(db)
  return rows[0]?.identity ?? identity
}

/** Whether blocks of this network were ever traced. */
export const findTraced = async (db: Db, chain_id: number): Promise<boolean> => {
  const row = await db
    .selectFrom('chain')
    .select('is_traced')
    .where('chain_id', '=', chain_id)
    .executeTakeFirst()
  return row?.is_traced === true
}

/** Remembers that blocks of this network are traced, or that it is given up. */
export const setTraced = async (db: Db, chain_id: number, is_traced: boolean): Promise<void> => {
  await sql`update chain set is_traced = ${is_traced} where chain_id = ${chain_id}`.execute(db)
}
