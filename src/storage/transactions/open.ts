// Managed transactions that a block may decide. Rows are locked in one order (organization, transaction); in the lock order
// of docs/architecture.md they come after the cursor and the block, and before webhooks.

import { sql } from 'kysely'
import { lowestId } from '../../lib/ids.ts'
import type { Db } from '../pg/database.ts'
import { prepared } from '../pg/prepared.ts'
import { depthOf, type TransactionRow } from './transactions.ts'

/** The states of what is open, as a list of SQL. */
export const open = sql`('TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED')`
const onTheWay = sql`('TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT')`
// Lock all rows in one order to avoid deadlocks.
const inOrder = sql`order by organization_id, transaction_id`

/** Whether anything of a chain is still on its way; most blocks need to ask no more than this. */
export const hasOpenTransactions = async (trx: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`${sql.raw(prepared)}
    select from managed_transaction where network_id = ${network_id} and transaction_state in ${open}
    limit 1`.execute(trx)
  return rows.length > 0
}

/** What is on its way with one of the nonces, locked. */
export const lockOnTheWay = async (
  trx: Db,
  network_id: number,
  used: readonly { from: Buffer; nonce: number }[],
): Promise<TransactionRow[]> => {
  if (used.length === 0) return []
  const senders = used.map(({ from }) => from)
  const nonces = used.map(({ nonce }) => nonce)
  // By nonce as well: every organization may have 1,000 open transactions of an address, and a block must not read them all.
  const { rows } = await sql<TransactionRow>`
    select * from managed_transaction
    where network_id = ${network_id} and transaction_state in ${onTheWay}
      and ("from", nonce) in (
        select * from unnest(${senders}::bytea[], ${nonces}::int8[]))
    ${inOrder} for update`.execute(trx)
  return rows
}

const depth = depthOf(sql`m.wallet_id`)
const decidedBlock = sql`coalesce(block_number, replaced_block_number)`

const decided = sql`transaction_state in ${open} and ${decidedBlock} is not null`
// Processes of an earlier version may run beside this one: they note no block, and leave one that has become wrong. So what has
// none is looked at as well, and the confirmation of all is computed.
const noted = sql`coalesce(due_block, 0)`
const isConfirmed = (head: number) =>
  sql`${decided} and ${noted} <= ${head} and ${decidedBlock} + ${depth} <= ${head}`

/** Whether a head may have confirmed something; most blocks need to ask no more than this. */
export const hasConfirmed = async (db: Db, network_id: number, head: number): Promise<boolean> => {
  const { rows } = await sql<{ is_due: boolean }>`${sql.raw(prepared)}
    select ${noted} <= ${head}::int8 as is_due from managed_transaction
    where network_id = ${network_id} and ${decided} order by ${noted} limit 1`.execute(db)
  return rows[0]?.is_due === true
}

/** How much of what a head has confirmed is taken at once. */
export type ConfirmedPart = { limit: number; perOrganization: number }

// Of `data`, in all transactions of a page. Records contain it as hex, once for each webhook.
const mostBytes = 2 ** 21

/**
 * What a head has confirmed: transactions that were mined, or whose nonce another one took. A page of them, locked, the oldest
 * of each organization first; and whether there may be more. One organization may have 100,000, which a lower confirmation of
 * their wallet confirms at once, and blocks of all organizations wait for a page.
 */
export const lockConfirmed = async (
  trx: Db,
  {
    network_id,
    head,
    limit,
    perOrganization,
  }: ConfirmedPart & { network_id: number; head: number },
): Promise<{ rows: TransactionRow[]; isMore: boolean }> => {
  const ofNetwork = sql`m.network_id = ${network_id}`
  const first = (than: ReturnType<typeof sql>) => sql`
    select m.organization_id, ${noted} as due from managed_transaction m
    where ${ofNetwork} and ${decided} ${than} order by m.organization_id, ${noted} limit 1`
  // Steps from organization to organization in the index. Each row is locked by a look-up of its own, whatever the planner
  // expects, and its conditions are checked again if another transaction has changed it meanwhile.
  const { rows: found } = await sql<TransactionRow & { page_part: number; page_found: number }>`
    with recursive step (organization_id, due) as (
      (${first(sql``)})
      union all
      select n.* from step cross join lateral (
        ${first(sql`and m.organization_id > step.organization_id`)}) n),
    due as (
      select organization_id from step where due <= ${head} order by due, organization_id limit ${limit}),
    part as (
      select least(${perOrganization}::int8, greatest(1, ${limit}::int8 / greatest(1, count(*)))) as count
      from due),
    found as materialized (
      select d.* from due cross join lateral (
        select p.*, row_number() over () as turn from (
          select m.organization_id, m.transaction_id, octet_length(m.data) as size
          from managed_transaction m
          where ${ofNetwork} and m.organization_id = due.organization_id and ${isConfirmed(head)}
          order by ${noted} limit (select count from part)) p) d),
    page as materialized (
      select organization_id, transaction_id from (
        select *, sum(size) over (order by turn, organization_id) - size as earlier from found) f
      where earlier < ${mostBytes} order by organization_id, transaction_id)
    select m.*, (select count from part) as page_part, (select count(*) from found) as page_found
    from page cross join lateral (
      select * from managed_transaction m
      where m.organization_id = page.organization_id and m.transaction_id = page.transaction_id
        and ${isConfirmed(head)}
      for update) m`.execute(trx)
  const counts = new Map<string, number>()
  for (const { organization_id } of found)
    counts.set(organization_id, (counts.get(organization_id) ?? 0) + 1)
  const isMore = found.some(
    ({ organization_id, page_part, page_found }) =>
      page_found >= limit ||
      page_found > found.length ||
      counts.get(organization_id)! >= Number(page_part),
  )
  return { rows: found.map(({ page_part: _, page_found: __, ...row }) => row), isMore }
}

/** One transaction, locked, if a head has confirmed it. */
export const lockIfConfirmed = async (
  trx: Db,
  { organization_id, transaction_id }: Pick<TransactionRow, 'organization_id' | 'transaction_id'>,
  head: number,
): Promise<TransactionRow[]> => {
  const { rows } = await sql<TransactionRow>`
    select * from managed_transaction m
    where organization_id = ${organization_id} and transaction_id = ${transaction_id}
      and ${isConfirmed(head)} for update`.execute(trx)
  return rows
}

/** The last transaction of a page: they go by state and age. */
export type DecidedKey = { transaction_state: string; create_time: Date; transaction_id: string }

/**
 * Computes the block that confirms for a page of what is open of a wallet, whose confirmation has changed; answers its last
 * row where more may follow. The cursor must be locked: what a block decides later has the new confirmation.
 */
export const postponeTransactions = async (
  trx: Db,
  { wallet_id, after, limit }: { wallet_id: string; after: DecidedKey | undefined; limit: number },
): Promise<DecidedKey | undefined> => {
  const follows = after
    ? sql`and (transaction_state, create_time, transaction_id)
        > (${after.transaction_state}, ${after.create_time}, ${after.transaction_id})`
    : sql``
  const { rows } = await sql<DecidedKey>`
    with page as materialized (
      select organization_id, transaction_state, create_time, transaction_id from managed_transaction
      where wallet_id = ${wallet_id} and transaction_state in ${open} ${follows}
      order by transaction_state, create_time, transaction_id limit ${limit}),
    moved as (
      update managed_transaction m set due_block = ${decidedBlock} + ${depth} from page p
      where m.organization_id = p.organization_id and m.transaction_id = p.transaction_id
        and ${decidedBlock} is not null)
    select transaction_state, create_time, transaction_id from page
    order by transaction_state, create_time, transaction_id`.execute(trx)
  return rows.length === limit ? rows.at(-1) : undefined
}

/** What the blocks above a number decided, locked. */
export const lockDecidedAbove = async (
  trx: Db,
  network_id: number,
  number: number,
): Promise<TransactionRow[]> => {
  const { rows } = await sql<TransactionRow>`
    select * from managed_transaction
    where network_id = ${network_id} and (block_number > ${number} or replaced_block_number > ${number})
    ${inOrder} for update`.execute(trx)
  return rows
}

type Due = {
  network_id: number
  now: Date
  limit: number
  /** Addresses that are left out. */
  except?: readonly Buffer[]
}

/** The transactions that a sender has to check, the longest waiting first. */
export const listDueBroadcasts = async (
  db: Db,
  { network_id, now, limit, except = [] }: Due,
): Promise<TransactionRow[]> => {
  // Lower nonces first: a node may refuse a transaction whose predecessor it does not know.
  const { rows } = await sql<TransactionRow>`
    select * from managed_transaction
    where network_id = ${network_id} and next_broadcast_time <= ${now}
      and "from" <> all(${except as Buffer[]}::bytea[])
    order by next_broadcast_time, nonce limit ${limit}`.execute(db)
  return rows
}

// Each costs a look-up in the index. What is due of organizations beyond them waits for a later round.
const organizationsPerPage = 256

/**
 * The same where more is due than one page holds: first the longest waiting one of each organization, then the second of
 * each, at most a quarter of a page. By time alone, one organization with 100,000 due transactions would delay the retries
 * of all others. Begins with the organization after `after` and goes round, so that a sender reaches all of them.
 */
export const listDueOfEach = async (
  db: Db,
  { network_id, now, limit, except = [], after }: Due & { after: string },
): Promise<TransactionRow[]> => {
  const next = (than: ReturnType<typeof sql>) => sql`
    (select organization_id from managed_transaction
    where network_id = ${network_id} and next_broadcast_time is not null and organization_id > ${than}
    order by organization_id limit 1)`
  const nextOrFirst = (than: ReturnType<typeof sql>) =>
    sql`coalesce(${next(than)}, ${next(sql`${lowestId}::uuid`)})`
  // Steps from organization to organization in the index; `distinct` would read all rows of each.
  const { rows } = await sql<TransactionRow>`
    with recursive step (organization_id, first, place) as (
      select organization_id, organization_id, 1
      from (select ${nextOrFirst(sql`${after}::uuid`)} as organization_id) start
      union all
      select follower.organization_id, first, place + 1
      from step cross join lateral (
        select ${nextOrFirst(sql`step.organization_id`)} as organization_id) follower
      where follower.organization_id <> first and place < ${organizationsPerPage}
    )
    select (due.m).* from step cross join lateral (
      select m, row_number() over (order by next_broadcast_time, nonce) as turn
      from (
        select * from managed_transaction
        where network_id = ${network_id} and organization_id = step.organization_id
          and next_broadcast_time <= ${now} and "from" <> all(${except as Buffer[]}::bytea[])
        order by next_broadcast_time, nonce limit ${Math.ceil(limit / 4)}
      ) m
    ) due
    order by due.turn, step.place limit ${limit}`.execute(db)
  return rows
}

/** What was created before a time and never signed, oldest first. */
export const listUnsigned = async (
  db: Db,
  { network_id, before, limit }: { network_id: number; before: Date; limit: number },
): Promise<Pick<TransactionRow, 'organization_id' | 'transaction_id'>[]> => {
  const { rows } = await sql<Pick<TransactionRow, 'organization_id' | 'transaction_id'>>`
    select organization_id, transaction_id from managed_transaction
    where network_id = ${network_id} and transaction_state = 'TRANSACTION_STATE_CREATED'
      and create_time <= ${before}
    order by create_time limit ${limit}`.execute(db)
  return rows
}

/** How much is on its way, and how much of it for longer than it should. */
export const countOnTheWay = async (
  db: Db,
  network_id: number,
  sentBefore: Date,
): Promise<{ open: number; stuck: number }> => {
  const { rows } = await sql<{ open: number; stuck: number }>`
    select count(*) as open,
      count(*) filter (where sent_time < ${sentBefore} and transaction_state in ${onTheWay}) as stuck
    from managed_transaction where network_id = ${network_id} and transaction_state in ${open}`.execute(
    db,
  )
  return rows[0]!
}
