import { sql } from 'kysely'
import type { StoredAddressRules } from '../access/tables.ts'
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

/** A network as the configuration describes it. */
export type DescribedNetwork = NetworkName & {
  /** The letters of the variants that its chain offers: `CQ`. */
  variants: string
  is_default: boolean
}

/** The row id of a network. It is assigned at the first start, counts from 1 and never changes. */
export const ensureNetwork = async (
  db: Db,
  network: NetworkName & { create_time: Date } & Partial<DescribedNetwork>,
): Promise<number> => {
  const known = await find(db, network)
  if (known !== undefined) return known
  const { chain, create_time, variants = '', is_default = true } = network
  // Two processes may choose the same id: one inserts, the other finds the row or tries again.
  await sql`
    insert into network
      (network_id, chain, network, variants, is_default, create_time, is_traced)
    select coalesce(max(network_id), 0) + 1,
      ${chain}, ${network.network}, ${variants}, ${is_default}, ${create_time}, false
    from network
    on conflict do nothing`.execute(db)
  return await ensureNetwork(db, network)
}

/** Stores what the configuration says of networks that have a row. */
export const describeNetworks = async (
  db: Db,
  networks: readonly DescribedNetwork[],
): Promise<void> => {
  await sql`
    update network set variants = said.variants, is_default = said.is_default
    from unnest(
      ${networks.map(({ chain }) => chain)}::text[],
      ${networks.map(({ network }) => network)}::text[],
      ${networks.map(({ variants }) => variants)}::text[],
      ${networks.map(({ is_default }) => is_default)}::boolean[]
    ) as said (chain, network, variants, is_default)
    where network.chain = said.chain and network.network = said.network
      and (network.variants <> said.variants or network.is_default <> said.is_default)`.execute(db)
}

/** Every network that has a row, as the configuration described it last. */
export const listNetworks = async (db: Db): Promise<DescribedNetwork[]> =>
  await db
    .selectFrom('network')
    .select(['chain', 'network', 'variants', 'is_default'])
    .orderBy('network_id')
    .execute()

/** A network as it is stored: the id of its rows, and how its addresses are printed. */
export type StoredNetwork = { network_id: number; address_rules: StoredAddressRules | null }

/** A stored network, or the default one of its chain; undefined when there never was one. */
export const findStoredNetwork = async (
  db: Db,
  chain: string,
  network?: string,
): Promise<StoredNetwork | undefined> =>
  await db
    .selectFrom('network')
    .select(['network_id', 'address_rules'])
    .where('chain', '=', chain)
    .$if(network !== undefined, (query) => query.where('network', '=', network!))
    .orderBy('is_default', 'desc')
    .orderBy('network_id')
    .executeTakeFirst()

/** Stores how addresses of a network are printed, as its chain says. */
export const setAddressRules = async (
  db: Db,
  network_id: number,
  rules: StoredAddressRules,
): Promise<void> => {
  await sql`
    update network set address_rules = ${JSON.stringify(rules)}::jsonb
    where network_id = ${network_id}
      and address_rules is distinct from ${JSON.stringify(rules)}::jsonb`.execute(db)
}

/** The identities that nodes of these networks reported, as far as they are stored. */
export const listIdentities = async (
  db: Db,
): Promise<(NetworkName & { identity: string | null })[]> =>
  await db.selectFrom('network').select(['chain', 'network', 'identity']).execute()

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
