// Balance work of blocks far behind the head (`farBehind` of the tracker). While the tracker catches up, one row holds the
// pairs of a batch of blocks instead of a row per pair and block. At most `mostPairs` wait per network; beyond that the
// caller stores ordinary work.

import { randomUUIDv7 } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import type { AssetKey, AssetType } from '../../contract/records/assets.ts'
import { type BulkRow, insertRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import type { DueBalance } from './changes.ts'

/** Balance work of a batch of blocks that is done together or not at all. */
export type Backlog = { backlog_id: string; pairs: DueBalance[] }

type Change = BulkRow<'balance_change'>

/** Whose balance of what; a document names it once, with all addresses that it concerns and their blocks. */
type Owner = AddressList & {
  wallet_id: string
  organization_id: string
  confirmation: number
  asset_id: string
  asset_type: AssetType
  contract_address: string
  token_id: string
  /** Twelve hex digits each. */
  blocks: string
}

type Work = { owners: Owner[] }

// 48 bits of block number: six bytes, as the statement below decodes them.
const blockDigits = 12

/** Converting these to ordinary work takes up to two seconds, for which the removal of an address waits. */
const mostPairs = 100_000

/**
 * Notes balance work as one row, and says whether it did: not beyond a bound. Every block of a pair
 * stands there, because a reorganization may take back the newest one only.
 */
export const insertBacklog = async (
  trx: Db,
  {
    network_id,
    changes,
    assets,
  }: { network_id: number; changes: readonly Change[]; assets: ReadonlyMap<string, AssetKey> },
): Promise<boolean> => {
  if (changes.length === 0) return true
  // Read without a lock: the caller holds the cursor exclusively, so no other row appears
  // meanwhile.
  const { rows } = await sql<{ pairs: number }>`
    select coalesce(sum(pair_count), 0)::int8 as pairs from balance_backlog
    where network_id = ${network_id}`.execute(trx)
  if (rows[0]!.pairs + changes.length > mostPairs) return false
  const work = pack(changes, assets)
  // The highest: the row is due when the last of its pairs is, so that it is read once.
  const due_block = changes.reduce((due, change) => Math.max(due, change.due_block), 0)
  await insertRows(trx, 'balance_backlog', [
    { network_id, backlog_id: randomUUIDv7(), due_block, pair_count: changes.length, work },
  ])
  return true
}

function pack(changes: readonly Change[], assets: ReadonlyMap<string, AssetKey>): Work {
  // One entry per wallet, asset, confirmation and length of address: the ids would otherwise be repeated for each pair.
  const owners = new Map<string, Owner>()
  for (const {
    wallet_id,
    organization_id,
    asset_id,
    address,
    block_number,
    due_block,
  } of changes) {
    const confirmation = due_block - block_number + 1
    const { length } = address
    // Lists of one length each, so that a place in the text is a multiplication.
    const key = `${wallet_id}/${asset_id}/${confirmation}/${length}`
    let owner = owners.get(key)
    if (!owner) {
      const { asset_type, contract_address, token_id } = assets.get(asset_id)!
      owner = {
        ...{ wallet_id, organization_id, confirmation, asset_id, asset_type, length },
        contract_address: contract_address.toString('hex'),
        token_id: token_id.toString(),
        addresses: '',
        blocks: '',
      }
      owners.set(key, owner)
    }
    owner.addresses += address.toString('hex')
    owner.blocks += block_number.toString(16).padStart(blockDigits, '0')
  }
  return { owners: [...owners.values()] }
}

function unpack({ owners }: Work): DueBalance[] {
  return owners.flatMap((owner) => {
    const { wallet_id, organization_id, confirmation, asset_id, asset_type, blocks } = owner
    const contract_address = Buffer.from(owner.contract_address, 'hex')
    const token_id = BigInt(owner.token_id)
    return addressesIn(owner).map((address, index) => ({
      wallet_id,
      organization_id,
      confirmation,
      asset_id,
      asset_type,
      contract_address,
      token_id,
      address,
      block_number: Number.parseInt(blocks.substr(index * blockDigits, blockDigits), 16),
      ahead: null,
      token_account_address: null,
    }))
  })
}

/** Rows that this head makes due, oldest first, at least one and no more than so many pairs. */
export const listDueBacklogs = async (
  db: Db,
  { network_id, head, pairs }: { network_id: number; head: number; pairs: number },
): Promise<Backlog[]> => {
  // The window sum cuts the list at a number of pairs; the oldest row is always included, however
  // large it is.
  const { rows } = await sql<{ backlog_id: string; work: Work }>`
    select b.backlog_id, b.work from (
      select backlog_id, sum(pair_count) over (order by backlog_id) - pair_count as before
      from balance_backlog where network_id = ${network_id} and due_block <= ${head}) d
    join balance_backlog b on b.network_id = ${network_id} and b.backlog_id = d.backlog_id
    where d.before < ${pairs} order by b.backlog_id`.execute(db)
  return rows.map(({ backlog_id, work }) => ({ backlog_id, pairs: unpack(work) }))
}

// One order for all writers. Materialized by the callers, because a delete would lock in the order
// of the scan.
const locked = (network_id: number, backlog_ids?: readonly string[]) => sql`
  select backlog_id from balance_backlog where network_id = ${network_id}
    ${backlog_ids ? sql`and backlog_id = any(${backlog_ids as string[]}::uuid[])` : sql``}
  order by backlog_id for update`

/** Takes rows away, because their work is done, and says which of them were still there. */
export const settleBacklogs = async (
  trx: Db,
  network_id: number,
  backlog_ids: readonly string[],
): Promise<Set<string>> => {
  const { rows } = await sql<{ backlog_id: string }>`
    with held as materialized (${locked(network_id, backlog_ids)})
    delete from balance_backlog b using held h
    where b.network_id = ${network_id} and b.backlog_id = h.backlog_id
    returning b.backlog_id`.execute(trx)
  return new Set(rows.map(({ backlog_id }) => backlog_id))
}

const hasBacklogs = async (trx: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`
    select from balance_backlog where network_id = ${network_id} limit 1`.execute(trx)
  return rows.length > 0
}

/**
 * Makes ordinary balance work of a chain's rows, all of them unless some are named. To be called
 * by code that removes, moves or searches work, before that and while it holds the cursor.
 */
export const expandBacklogs = async (
  trx: Db,
  network_id: number,
  backlog_ids?: readonly string[],
): Promise<void> => {
  // Usually there is none, and planning the statement below takes the database 0.7 ms.
  if (!backlog_ids && !(await hasBacklogs(trx, network_id))) return
  await sql`
    with held as materialized (${locked(network_id, backlog_ids)}),
    gone as (
      delete from balance_backlog b using held h
      where b.network_id = ${network_id} and b.backlog_id = h.backlog_id returning b.work)
    insert into balance_change (wallet_id, address, asset_id, block_number, organization_id,
      network_id, due_block)
    select (l.list->>'wallet_id')::uuid, a.address, (l.list->>'asset_id')::uuid, n.block,
      (l.list->>'organization_id')::uuid, ${network_id}::int2,
      n.block + (l.list->>'confirmation')::int8 - 1
    from gone g, ${unfoldLists(sql`g.work->'owners'`)}
    cross join lateral (
      select ('x' || encode(substr(b.blocks, 1 + a.place * ${sql.lit(blockDigits / 2)},
        ${sql.lit(blockDigits / 2)}), 'hex'))::bit(48)::int8 as block) n
    on conflict do nothing`.execute(trx)
}

/**
 * Addresses of one length as one text of hex digits, in documents that name many: with a text for each
 * of them, reading the document cost the server as much as storing it.
 */
type AddressList = { length: number; addresses: string }

/** The addresses of a list. */
const addressesIn = ({ length, addresses }: AddressList): Buffer[] => {
  const bytes = Buffer.from(addresses, 'hex')
  return Array.from({ length: bytes.length / length }, (_, place) =>
    bytes.subarray(place * length, (place + 1) * length),
  )
}

/**
 * The lists of a document as a table of a statement: `l.list`, and for each of its addresses
 * `a.address` and `a.place`, counted from zero. `b.blocks` is decoded once per list: decoded per
 * address, the time was quadratic (7 s for 5,000 addresses of one wallet).
 */
const unfoldLists = (lists: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  jsonb_array_elements(${lists}) l (list)
  cross join lateral (
    select decode(l.list->>'addresses', 'hex') as bytes, (l.list->>'length')::int4 as length,
      decode(l.list->>'blocks', 'hex') as blocks
    offset 0) b
  cross join lateral (
    select place, substr(b.bytes, 1 + place * b.length, b.length) as address
    from generate_series(0, octet_length(b.bytes) / b.length - 1) place) a`
