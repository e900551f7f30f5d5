import { sql } from 'kysely'
import { encodeArray } from '../pg/binary-arrays.ts'
import { insertRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from './tables.ts'

/** A tracked address with what the tracker needs of its wallet. */
export type TrackedAddress = {
  address: Buffer
  organization_id: string
  wallet_id: string
  confirmation: number
}

/** An address of a wallet and when it was registered. */
export type ListedAddress = { address: Buffer; create_time: Date }

/**
 * Rows of one insert. Each takes about 2 ms of the database and much less than 1 ms of the event loop, and between two of them the
 * short statements of other callers have their turn.
 */
const rowsPerStatement = 100

/** Registers addresses in a wallet and says how many are new; those of any wallet stay as they are. */
export const insertAddresses = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  {
    wallet_id,
    addresses,
    create_time,
  }: { wallet_id: string; addresses: Buffer[]; create_time: Date },
): Promise<number> => {
  // All batches use one order, so that two batches with the same addresses do not deadlock.
  const sorted = addresses.toSorted(Buffer.compare)
  let added = 0
  for (let from = 0; from < sorted.length; from += rowsPerStatement) {
    const page = sorted.slice(from, from + rowsPerStatement)
    added += await insertRows(
      trx,
      'wallet_address',
      page.map((address) => ({ network_id, address, organization_id, wallet_id, create_time })),
    )
  }
  return added
}

/** Which wallets of the organization have these addresses. */
export const findOwners = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  addresses: readonly Buffer[],
): Promise<{ address: Buffer; wallet_id: string }[]> =>
  await db
    .selectFrom('wallet_address')
    .select(['address', 'wallet_id'])
    .where('network_id', '=', network_id)
    .where('organization_id', '=', organization_id)
    .where(sql<boolean>`address = any(${addresses as Buffer[]}::bytea[])`)
    .execute()

/** The first addresses of each wallet in the order of their bytes. */
export const listFirstAddresses = async (
  db: Db,
  wallet_ids: readonly string[],
  limit: number,
): Promise<(ListedAddress & { wallet_id: string })[]> => {
  const { rows } = await sql<ListedAddress & { wallet_id: string }>`
    select w.wallet_id, a.address, a.create_time
    from unnest(${wallet_ids as string[]}::uuid[]) w (wallet_id)
    cross join lateral (
      select address, create_time from wallet_address
      where wallet_id = w.wallet_id order by address limit ${limit}) a`.execute(db)
  return rows
}

/** Some addresses of a wallet in the order of their bytes. */
export const pageAddresses = async (
  db: Db,
  wallet_id: string,
  { after, limit }: { after?: Buffer | undefined; limit: number },
): Promise<ListedAddress[]> => {
  const page = db
    .selectFrom('wallet_address')
    .select(['address', 'create_time'])
    .where('wallet_id', '=', wallet_id)
    .orderBy('address')
    .limit(limit)
  return await (after ? page.where('address', '>', after) : page).execute()
}

/** An address with the wallet that has it. */
export type OwnedAddress = { wallet_id: string; address: Buffer; confirmation: number }

/** Some addresses of an organization, or of one of its wallets, wallet by wallet. */
export const pageOwnedAddresses = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  page: {
    wallet_id?: string | undefined
    after?: { wallet_id: string; address: Buffer } | undefined
    limit: number
  },
): Promise<OwnedAddress[]> => {
  const { wallet_id, after, limit } = page
  const one = wallet_id === undefined ? sql`` : sql`and w.wallet_id = ${wallet_id}`
  const beyondWallet = after ? sql`and w.wallet_id >= ${after.wallet_id}` : sql``
  const beyondAddress = after
    ? sql`and (wallet_id, address) > (${after.wallet_id}::uuid, ${after.address}::bytea)`
    : sql``
  // Ordered inside and not outside: an outer order lets the planner read all addresses that are left before it sorts. The nested
  // loop of a lateral join keeps the order of both.
  const { rows } = await sql<OwnedAddress>`
    select w.wallet_id, t.address, w.confirmation
    from (
      select wallet_id, confirmation from wallet w
      where w.organization_id = ${organization_id} and w.network_id = ${network_id} ${one} ${beyondWallet}
      order by wallet_id offset 0) w
    cross join lateral (
      select address from wallet_address where wallet_id = w.wallet_id ${beyondAddress}
      order by address limit ${limit}) t
    limit ${limit}`.execute(db)
  return rows
}

/** Which of these addresses a wallet has; they stay until the transaction ends. */
export const holdAddresses = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  addresses: readonly Buffer[],
): Promise<OwnedAddress[]> => {
  // In the order of the key, as all writers of addresses, so that two of them do not deadlock.
  const { rows } = await sql<OwnedAddress>`
    select t.wallet_id, t.address, w.confirmation
    from wallet_address t join wallet w on w.wallet_id = t.wallet_id
    where t.network_id = ${network_id} and t.organization_id = ${organization_id}
      and t.address = any(${addresses as Buffer[]}::bytea[])
    order by t.address for share of t`.execute(trx)
  return rows
}

type TrackedWallet = Omit<TrackedAddress, 'address'> & { addresses: Buffer }

/** The tracked addresses among those of a block, with their organizations: one query for any number. */
export const findTracked = async (
  trx: Db,
  network_id: number,
  addresses: readonly Buffer[],
): Promise<TrackedAddress[]> => {
  if (addresses.length === 0) return []
  // One row for each wallet with all its addresses, each after its length: a row for each address costs
  // the server as much to write, and us to read, as to find it. The addresses come by a query of their own:
  // the planner would estimate each of them.
  const { rows } = await sql<TrackedWallet>`
    select a.organization_id, a.wallet_id, w.confirmation, a.addresses
    from (
      select organization_id, wallet_id,
        string_agg(set_byte('\\x00', 0, octet_length(address)) || address, '') as addresses
      from wallet_address
      where network_id = ${network_id}
        and address = any((select ${encodeArray('bytea', addresses)}::bytea[])::bytea[])
      group by organization_id, wallet_id) a
    join wallet w on w.wallet_id = a.wallet_id`.execute(trx)
  return rows.flatMap(addressesOf)
}

function addressesOf({ addresses, organization_id, wallet_id, confirmation }: TrackedWallet) {
  // Each address follows its length, which is one byte.
  const found: TrackedAddress[] = []
  let end = 0
  while (end < addresses.length) {
    const begin = end + 1
    end = begin + addresses[end]!
    const address = addresses.subarray(begin, end)
    found.push({ address, organization_id, wallet_id, confirmation })
  }
  return found
}
