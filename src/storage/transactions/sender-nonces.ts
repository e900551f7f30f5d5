// What is open at an address: the lowest free nonce, a count and a sum. They follow from the transactions. Reading up to 1,000 of
// them for each new one is too much, so that a row keeps what was read, and creations and cancellations carry it on, all under the
// lock of the address. Blocks do not: they only end transactions, so that count and sum stay upper bounds, and free no nonce. What
// the row says is checked where it matters, and after a while the transactions are read again, as they are if there is no row.

import { sql } from 'kysely'
import { maxOpenTransactions } from '../../contract/limits.ts'
import type { Db } from '../pg/database.ts'
import { holds, live, lockSender, type Sender } from './nonces.ts'
import type { TransactionRow } from './transactions.ts'

/** The lowest free nonce of an address, and what the open transactions of the organization are. */
export type SenderView = {
  free: number
  count: number
  /** What those not mined may spend. */
  cost: bigint
}

type ViewOptions = {
  /** The count of the chain: lower nonces are not free. */
  from: number
  /** A nonce that is about to be replaced: what has it spends nothing. */
  exceptNonce: number | undefined
}

/** What is open at an address that the caller has locked. */
export const viewSender = async (
  trx: Db,
  sender: Sender,
  options: ViewOptions,
): Promise<SenderView> => {
  const { exceptNonce } = options
  const view = (await findView(trx, sender, options)) ?? (await scanSender(trx, sender, options))
  if (exceptNonce === undefined) return view
  return { ...view, cost: view.cost - (await sumAt(trx, sender, exceptNonce)) }
}

const ofSender = ({ organization_id, network_id, from }: Sender) => sql`
  organization_id = ${organization_id} and network_id = ${network_id} and "from" = ${from}`

const spends = sql`value + gas * gas_price`
const notMined = sql`transaction_state <> 'TRANSACTION_STATE_MINED'`

// A few transactions are read each time. The more there are, the longer the row is used: 1,000 are read every 30 seconds.
const msForEach = sql.lit(30)

/** The view of the row, where it holds: the nonce after those that are known to be held must itself be free. */
const findView = async (
  trx: Db,
  sender: Sender,
  { from }: ViewOptions,
): Promise<SenderView | undefined> => {
  const { organization_id, network_id } = sender
  const { rows } = await sql<SenderView>`
    select free, count, cost from (
      select greatest(next_nonce, ${from}::int8) as free, open_count as count, open_cost as cost
      from sender_nonce
      where ${ofSender(sender)} and base_nonce <= ${from}
        and open_count < ${sql.lit(maxOpenTransactions)}
        and scan_time > clock_timestamp() - open_count * ${msForEach} * interval '1 millisecond') s
    where not exists (
      select from managed_transaction m
      where network_id = ${network_id} and "from" = ${sender.from} and nonce = s.free
        and transaction_state <> 'TRANSACTION_STATE_CANCELED'
        and (organization_id = ${organization_id} or transaction_state <> 'TRANSACTION_STATE_CREATED'))`.execute(
    trx,
  )
  return rows[0]
}

/**
 * Reads all open transactions of an address and keeps the result. In their order the held nonces equal the numbers from the count
 * of the chain on, up to the first gap. Those of transactions that ended on the chain count as held, too: where the nodes
 * say that such a nonce is free, the number was read before the transaction ended, or a reorganization is about to bring it back.
 */
const scanSender = async (trx: Db, sender: Sender, { from }: ViewOptions): Promise<SenderView> => {
  const { organization_id, network_id } = sender
  // Not kept where other organizations hold nonces: they cancel without the lock of this one.
  const { rows } = await sql<SenderView>`
    with found as (
      select nonces.free, nonces.has_others, sums.count, sums.cost from (
        select ${from}::int8 + count(*) filter (where nonce = ${from}::int8 + place - 1) as free,
          coalesce(bool_or(is_other), false) as has_others
        from (
          select nonce, bool_or(organization_id <> ${organization_id}) as is_other,
            row_number() over (order by nonce) as place
          from managed_transaction
          where network_id = ${network_id} and "from" = ${sender.from} and nonce >= ${from}
            and transaction_state <> 'TRANSACTION_STATE_CANCELED' and ${holds(sender)}
          group by nonce) held) nonces, (
        select count(*) as count, coalesce(sum(${spends}) filter (where ${notMined}), 0) as cost
        from managed_transaction where ${ofSender(sender)} and ${live}) sums),
    kept as (
      insert into sender_nonce (organization_id, network_id, "from", base_nonce, next_nonce, open_count, open_cost,
        count_time, scan_time)
      select ${organization_id}::uuid, ${network_id}::int2, ${sender.from}::bytea, ${from}::int8, free, count, cost,
        clock_timestamp(), clock_timestamp()
      from found where not has_others
      on conflict (organization_id, network_id, "from") do update
        set base_nonce = excluded.base_nonce, next_nonce = excluded.next_nonce,
          open_count = excluded.open_count, open_cost = excluded.open_cost,
          count_time = excluded.count_time, scan_time = excluded.scan_time)
    select free, count, cost from found`.execute(trx)
  return rows[0]!
}

/** What the transactions of an organization that have a nonce may spend. */
const sumAt = async (trx: Db, sender: Sender, nonce: number): Promise<bigint> => {
  const { rows } = await sql<{ cost: bigint }>`
    select coalesce(sum(${spends}), 0) as cost from managed_transaction
    where ${ofSender(sender)} and nonce = ${nonce} and ${live} and ${notMined}`.execute(trx)
  return rows[0]!.cost
}

/** Carries the row on when a transaction of the organization frees its nonce. */
export const noteFreed = async (
  trx: Db,
  row: Pick<
    TransactionRow,
    'organization_id' | 'network_id' | 'from' | 'nonce' | 'value' | 'gas' | 'gas_price'
  >,
): Promise<void> => {
  // One that creates may be about to write the row, from transactions of which this one is still open.
  await lockSender(trx, row)
  const cost = row.value + row.gas * row.gas_price
  await sql`
    update sender_nonce set next_nonce = least(next_nonce, ${row.nonce}::int8),
      open_count = greatest(open_count - 1, 0), open_cost = greatest(open_cost - ${cost}::numeric, 0)
    where ${ofSender(row)}`.execute(trx)
}

// A block may have ended some since they were counted. An address that has as many as allowed is counted again after this time.
const fullFor = sql`interval '2 seconds'`

/** Whether an address has as many open transactions as it may have, before anything else is done for another one. */
export const isSenderFull = async (db: Db, sender: Sender): Promise<boolean> => {
  const { rows } = await sql<{ is_recent: boolean }>`
    select count_time > clock_timestamp() - ${fullFor} as is_recent from sender_nonce
    where ${ofSender(sender)} and open_count >= ${sql.lit(maxOpenTransactions)}`.execute(db)
  const [full] = rows
  if (!full || full.is_recent) return full !== undefined
  return await db.transaction().execute(async (trx) => {
    await lockSender(trx, sender)
    const { rows } = await sql<{ open_count: number }>`
      update sender_nonce set count_time = clock_timestamp(), open_count = (
        select count(*) from managed_transaction where ${ofSender(sender)} and ${live})
      where ${ofSender(sender)} returning open_count`.execute(trx)
    return (rows[0]?.open_count ?? 0) >= maxOpenTransactions
  })
}

/** Removes rows that are too old to be used. */
export const deleteOldSenderNonces = async (db: Db): Promise<void> => {
  await sql`delete from sender_nonce where scan_time < clock_timestamp() - interval '1 hour'`.execute(
    db,
  )
}
