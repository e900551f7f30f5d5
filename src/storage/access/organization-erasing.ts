import { type RawBuilder, sql } from 'kysely'
import { expandBacklogs } from '../balances/backlog.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import { lockCursor } from '../tracking/blocks.ts'
import type { accessTables } from './tables.ts'

/** A deletion and what came of it. */
export type DeletionRow = RowOf<typeof accessTables.organization_deletion>

/** Rows that were removed, by table. */
export type Erased = Record<string, number>

// `limit` bounds each statement, so that a large organization is erased in many short transactions.
type Page = { organization_id: string; limit: number }
type Step = (db: Db, page: Page) => Promise<Erased>

// Every search here is in the order of an index. Without an order, a table of all organizations is read to
// its end where its statistics let the planner expect enough rows early. A range of one value is as good
// as equality, but its order counts: by a column that is equal, there is nothing to order.
const only = (organization_id: string) =>
  sql`organization_id between ${organization_id} and ${organization_id}`

const skipLocked = sql`for update skip locked`

// Their keys begin with the network, then the organization.
const keyedByNetwork = ['notification_event', 'notification_turn', 'state_event']
// No index has the organization. They have few rows, and are read up to the limit.
const notIndexed = ['job', 'balance_difference', 'websocket_client']

/** The places of so many rows of an organization. */
const placesOf = (table: string, { organization_id, limit }: Page, lock = sql``) => {
  if (notIndexed.includes(table))
    return sql`
      select ctid from ${sql.table(table)} where organization_id = ${organization_id}
      limit ${limit} ${lock}`
  if (keyedByNetwork.includes(table))
    return sql`
      select r.ctid from network n, lateral (
        select ctid from ${sql.table(table)}
        where network_id = n.network_id and ${only(organization_id)}
        order by organization_id limit ${limit} ${lock}) r
      limit ${limit}`
  return sql`
    select ctid from ${sql.table(table)} where ${only(organization_id)}
    order by organization_id limit ${limit} ${lock}`
}

/**
 * Removes rows of some tables, a page of each at most. Rows that others hold are left for the next time:
 * erasing never waits for locks, so it is never part of a deadlock.
 */
const byOrganization =
  (...tables: string[]): Step =>
  async (db, page) => {
    const erased: Erased = {}
    for (const table of tables)
      erased[table] = await removed(
        db,
        sql`
          delete from ${sql.table(table)} where ctid = any(array(
            ${placesOf(table, page, skipLocked)}))`,
      )
    return erased
  }

const removed = async (db: Db, statement: RawBuilder<unknown>): Promise<number> =>
  Number((await statement.execute(db)).numAffectedRows ?? 0n)

/** What the tracker looks up and what it writes for that, in the order in which tracking ends. */
const trackedTables = [
  'wallet_address',
  'token_import',
  'balance_change',
  'balance_pending',
  'balance',
] as const

// Behind the wallet in an index of each table that refers to one.
const behindWallet: Record<string, string> = {
  wallet_address: 'address',
  token_import: 'address',
  balance_change: 'address',
  balance_pending: 'address',
  balance: 'asset_type',
  managed_transaction: 'create_time',
}

// A bitmap has no order: where a wallet is expected to have few rows, all that it has would be sorted for
// every page.
const noBitmaps = sql`set local enable_bitmapscan = off`

/**
 * Looks at transfers wallet by wallet, along an index. With statistics of a month that were taken while it was filled, the
 * planner read all of it for each wallet.
 */
const alongIndexes = async <result>(trx: Db, act: () => Promise<result>): Promise<result> => {
  await sql`set local enable_seqscan = off`.execute(trx)
  const found = await act()
  await sql`set local enable_seqscan to default`.execute(trx)
  return found
}

/** Led by the wallets: their rows have no index by organization. */
const byWallet = (table: string, { organization_id, limit }: Page, network_id: number) => sql`
  delete from ${sql.table(table)} where ctid = any(array(
    select r.ctid from (
      select wallet_id from wallet where ${only(organization_id)} and network_id = ${network_id}
      order by organization_id, wallet_id offset 0) w, lateral (
      select ctid from ${sql.table(table)} where wallet_id = w.wallet_id
      order by ${sql.ref(behindWallet[table]!)} limit ${limit} for update skip locked) r
    limit ${limit}))`

/**
 * Ends tracking, a page of each table: with the cursor in hand, as RemoveAddress does, so that no block
 * stores something for an address that has just been removed. A page is small, because blocks wait for it.
 */
const tracked: Step = async (db, { organization_id, limit }) => {
  const erased: Erased = {}
  for (const network_id of await allChains(db))
    await db.transaction().execute(async (trx) => {
      const page = { organization_id, limit: Math.min(limit, 500) }
      await lockCursor(trx, network_id)
      await expandBacklogs(trx, network_id)
      await noBitmaps.execute(trx)
      await sql`
        update wallet set remove_time = coalesce(remove_time, update_time), address_count = 0
        where wallet_id = any(array(
          select wallet_id from wallet where ${only(organization_id)}
            and network_id = ${network_id} and (remove_time is null or address_count > 0)
          order by organization_id, wallet_id limit ${page.limit} for update skip locked))`.execute(
        trx,
      )
      for (const table of trackedTables)
        add(erased, { [table]: await removed(trx, byWallet(table, page, network_id)) })
      // With the cursor too: the tracker looks up contracts and rules together with addresses.
      for (const table of ['token_rule', 'contract'])
        add(erased, {
          [table]: await removed(
            trx,
            sql`
              delete from ${sql.table(table)} where ctid = any(array(
                select ctid from ${sql.table(table)} where ${only(organization_id)}
                  and network_id = ${network_id}
                order by organization_id limit ${page.limit} for update skip locked))`,
          ),
        })
    })
  return erased
}

const walletsAtOnce = 1_000

/** By the key instead of the place, which is not unique over partitions and machines. */
const removeTransfers = (organization_id: string, wallet_ids: string[], limit: number) => {
  const mine = sql`organization_id = ${organization_id}`
  return sql`
    delete from transfer t using (
      select r.* from unnest(${wallet_ids}::uuid[]) w (wallet_id), lateral (
        select wallet_id, block_time, block_number, ordinal, side from transfer
        where ${mine} and wallet_id = w.wallet_id
        order by block_time limit ${limit} for update skip locked) r
      limit ${limit}) r
    where t.${mine} and t.wallet_id = r.wallet_id and t.block_time = r.block_time
      and t.block_number = r.block_number and t.ordinal = r.ordinal and t.side = r.side`
}

/** A page of transfers, of so many wallets at once. */
const transfers: Step = async (db, { organization_id, limit }) =>
  await db.transaction().execute(async (trx) => {
    await noBitmaps.execute(trx)
    let transfer = 0
    let after: { network_id: number; wallet_id: string } | undefined
    do {
      // As a range of `wallet_list`: in the order of the ids alone the planner passes the wallets of all organizations.
      const follows = after
        ? sql`and (organization_id, network_id, wallet_id)
            > (${organization_id}::uuid, ${after.network_id}::int2, ${after.wallet_id}::uuid)`
        : sql``
      const { rows } = await sql<{ network_id: number; wallet_id: string }>`
        select network_id, wallet_id from wallet where ${only(organization_id)} ${follows}
        order by organization_id, network_id, wallet_id limit ${walletsAtOnce}`.execute(trx)
      const ids = rows.map(({ wallet_id }) => wallet_id)
      const page = removeTransfers(organization_id, ids, limit - transfer)
      transfer += await alongIndexes(trx, () => removed(trx, page))
      after = rows.length === walletsAtOnce ? rows.at(-1) : undefined
    } while (after !== undefined && transfer < limit)
    return { transfer }
  })

/** A page of notifications with their queue and attempts, and of those that wait for a confirmation. */
const deliveries: Step = async (db, { organization_id, limit }) => {
  const erased: Erased = {}
  for (const network_id of await allChains(db))
    await db.transaction().execute(async (trx) => {
      const { rows } = await sql<{
        webhook_history_id: string
        webhook_id: string
        sequence: number
      }>`
        select webhook_history_id, webhook_id, sequence from delivery
        where organization_id = ${organization_id} and network_id = ${network_id}
          and sequence is not null
        order by create_time, webhook_history_id limit ${limit} for update skip locked`.execute(trx)
      const ids = rows.map((row) => row.webhook_history_id)
      // By sequence: the key of attempts begins with webhook and sequence, not with the id of the
      // notification.
      const sequences = sql`unnest(${rows.map((row) => row.webhook_id)}::uuid[],
        ${rows.map((row) => row.sequence)}::int8[]) r (webhook_id, sequence)`
      add(erased, {
        delivery_queue: await removed(
          trx,
          sql`delete from delivery_queue where webhook_history_id = any(${ids}::uuid[])`,
        ),
        delivery_attempt: await removed(
          trx,
          sql`delete from delivery_attempt a using ${sequences}
            where a.webhook_id = r.webhook_id and a.sequence = r.sequence`,
        ),
        delivery: await removed(
          trx,
          sql`delete from delivery where webhook_history_id = any(${ids}::uuid[])`,
        ),
      })
      add(erased, {
        delivery: await removed(
          trx,
          sql`
            delete from delivery where webhook_history_id = any(array(
              select webhook_history_id from delivery
              where network_id = ${network_id} and due_block is not null
                and organization_id = ${organization_id}
              order by due_block limit ${limit} for update skip locked))`,
        ),
      })
    })
  return erased
}

/** Webhooks without headers: those would go with them, uncounted. */
const webhooks: Step = async (db, { organization_id, limit }) => ({
  webhook: await removed(
    db,
    sql`
      delete from webhook where webhook_id = any(array(
        select w.webhook_id from webhook w
        where w.organization_id = ${organization_id} and not exists (
          select from webhook_header h where h.webhook_id = w.webhook_id)
        limit ${limit} for update skip locked))`,
  ),
})

// Everything that refers to a wallet, but transfers. A row that is left would lose its wallet, so the wallet waits.
const referring = [
  ...Object.entries(behindWallet).map(([table, next]) => ({
    table: sql.table(table),
    where: sql`wallet_id = w.wallet_id`,
    order: sql.ref(next),
  })),
  // Their indexes have the wallet behind its organization and network.
  ...['webhook', 'token_rule'].map((table) => ({
    table: sql.table(table),
    where: sql`organization_id = w.organization_id and network_id = w.network_id
      and wallet_id between w.wallet_id and w.wallet_id`,
    order: sql.ref('wallet_id'),
  })),
]

// One look into an index for each wallet. `not exists` would lose the order, and joins whole indexes.
const unused = referring.map(
  ({ table, where, order }) => sql`
    (select true from ${table} where ${where} order by ${order} limit 1) is null`,
)

/** Wallets of which nothing is left: what others held a moment ago is found by them the next time. */
const wallets: Step = async (db, { organization_id, limit }) =>
  await db.transaction().execute(async (trx) => {
    const { rows } = await sql<{ wallet_id: string }>`
      select wallet_id from wallet w
      where ${only(organization_id)} and ${sql.join(unused, sql` and `)}
      order by organization_id, network_id, wallet_id limit ${limit} for update skip locked`.execute(
      trx,
    )
    const ids = rows.map(({ wallet_id }) => wallet_id)
    // On Citus the transfers are on another machine than the wallets.
    const look = sql<{ wallet_id: string }>`
      select w.wallet_id from unnest(${ids}::uuid[]) w (wallet_id), lateral (
        select 1 from transfer
        where organization_id = ${organization_id} and wallet_id = w.wallet_id
        order by block_time limit 1) t`
    const kept = await alongIndexes(trx, () => look.execute(trx))
    const used = new Set(kept.rows.map(({ wallet_id }) => wallet_id))
    const unusedIds = ids.filter((id) => !used.has(id))
    return {
      wallet: await removed(
        trx,
        sql`delete from wallet where wallet_id = any(${unusedIds}::uuid[])`,
      ),
    }
  })

/** Client address and target of audit events; the events themselves stay, and their chain verifies. */
const auditDetails: Step = async (db, { organization_id, limit }) => ({
  'audit_event.detail': await removed(
    db,
    sql`
      update audit_event set detail = null, detail_salt = null where sequence = any(array(
        select sequence from audit_event
        where ${only(organization_id)} and detail is not null
        order by organization_id limit ${limit}))`,
  ),
})

/** Jobs. Items belong to all: the jobs that look for their descriptions stay, and take the turns of no organization. */
const jobs: Step = async (db, { organization_id, limit }) => {
  const some = (condition: RawBuilder<unknown>) => sql`ctid = any(array(
    select ctid from job where organization_id = ${organization_id} and kind ${condition}
    limit ${limit} ${skipLocked}))`
  return {
    job: await removed(db, sql`delete from job where ${some(sql`<> 'token_metadata'`)}`),
    'job.organization_id': await removed(
      db,
      sql`update job set organization_id = null where ${some(sql`= 'token_metadata'`)}`,
    ),
  }
}

// Tracking ends first, so that nothing new is written. Rows that others refer to come last.
const steps: readonly Step[] = [
  byOrganization('credential', 'idempotency_key'),
  tracked,
  byOrganization('notification_event', 'state_event'),
  deliveries,
  byOrganization('webhook_header', 'sink'),
  webhooks,
  transfers,
  jobs,
  byOrganization('managed_transaction', 'rate_limit', 'rate_usage', 'method_usage'),
  byOrganization('balance_difference', 'notification_turn', 'quota', 'quota_use'),
  byOrganization('open_transaction_use', 'sender_nonce'),
  byOrganization('organization_write', 'operational_event', 'websocket_client'),
  wallets,
  auditDetails,
]

/** The tables that are erased; a test holds them against the columns of the database. */
export const erasedTables: readonly string[] = [
  ...['credential', 'idempotency_key', ...trackedTables, 'token_rule', 'contract'],
  ...['delivery', 'delivery_queue', 'delivery_attempt', 'webhook_header', 'webhook', 'transfer'],
  ...['managed_transaction', 'job', 'rate_limit', 'rate_usage', 'method_usage'],
  ...['balance_difference', 'wallet', 'organization', 'notification_event', 'notification_turn'],
  ...['quota', 'quota_use', 'state_event', 'sink', 'organization_write', 'operational_event'],
  ...['websocket_client', 'open_transaction_use', 'sender_nonce'],
]

/** Removes one page of everything that belongs to an organization; empty when there was nothing left. */
export async function erasePage(db: Db, page: Page): Promise<Erased> {
  const { organization_id } = page
  const all: Erased = {}
  for (const step of steps) {
    const erased = await step(db, page)
    add(all, erased)
    // Written step by step: after a crash at most the counts of one step are missing.
    await addErased(db, organization_id, erased)
  }
  return all
}

// Without a reference to the organization or to a wallet, which would keep it.
const loose = [
  'notification_event',
  'notification_turn',
  'state_event',
  'quota_use',
  'open_transaction_use',
  'sender_nonce',
  'job',
  'rate_usage',
  'method_usage',
  'balance_difference',
  'operational_event',
]

// A notification waits for a block or has a number: no index has both. Those that wait first, because they get a number.
const deliveriesOf = (organization_id: string) => [
  sql`
    select from network n, lateral (
      select from delivery where network_id = n.network_id
        and ${only(organization_id)} and due_block is not null
      order by organization_id limit 1) d
    limit 1`,
  sql`
    select from delivery where ${only(organization_id)} and sequence is not null
    order by organization_id limit 1`,
]

/** Removes the organization itself and ends its deletion; false while something of it is left. */
export const finishDeletion = async (
  db: Db,
  organization_id: string,
  finish_time: Date,
): Promise<boolean> =>
  await db.transaction().execute(async (trx) => {
    // Checked in the transaction that deletes: a process that wrote meanwhile keeps the
    // organization for another round.
    const page = { organization_id, limit: 1 }
    const left = ['wallet', ...loose].map((table) => placesOf(table, page))
    for (const statement of [...left, ...deliveriesOf(organization_id)])
      if ((await statement.execute(trx)).rows.length > 0) return false
    const organization = await removed(
      trx,
      sql`delete from organization where organization_id = ${organization_id}`,
    )
    await addErased(trx, organization_id, { organization })
    await sql`
      update organization_deletion set finish_time = ${finish_time}
      where organization_id = ${organization_id}`.execute(trx)
    return true
  })

/** Deletions that are under way, oldest first. */
export const listOpenDeletions = async (db: Db): Promise<DeletionRow[]> =>
  await db
    .selectFrom('organization_deletion')
    .selectAll()
    .where('finish_time', 'is', null)
    .orderBy('request_time')
    .limit(100)
    .execute()

/** The deletion of an organization. */
export const findDeletion = async (
  db: Db,
  organization_id: string,
): Promise<DeletionRow | undefined> =>
  await db
    .selectFrom('organization_deletion')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .executeTakeFirst()

/**
 * Disables an organization for good and notes what is to be erased. One that is being deleted stays as
 * it is; false when there is none.
 */
export const requestDeletion = async (
  trx: Db,
  organization_id: string,
  now: Date,
): Promise<boolean> => {
  // Disabling first refuses all further requests; the counts below are what the deletion report
  // shows.
  const { rows } = await sql`
    update organization set disable_time = coalesce(disable_time, ${now}), update_time = ${now}
    where organization_id = ${organization_id} returning 1`.execute(trx)
  if (rows.length === 0) return false
  const of = (table: string) =>
    sql`select count(*) from ${sql.table(table)} where organization_id = ${organization_id}`
  await sql`
    insert into organization_deletion (organization_id, request_time, erased, credential_count,
      webhook_count, canceled_transaction_count, in_flight_transaction_count)
    select ${organization_id}, ${now}, '{}', (${of('credential')}), (${of('webhook')} and sink is null),
      (${of('managed_transaction')} and transaction_state in
        ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED')),
      (${of('managed_transaction')} and transaction_state in
        ('TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT'))
    on conflict do nothing`.execute(trx)
  return true
}

// The report grows with each step, also over crashes.
const addErased = async (db: Db, organization_id: string, erased: Erased): Promise<void> => {
  const some = Object.entries(erased).filter(([, count]) => count > 0)
  if (some.length === 0) return
  // Added up in the database, so that a process that takes the work over continues the counts.
  await sql`
    update organization_deletion set erased = (
      select jsonb_object_agg(name, count) from (
        select name, sum(count::int8) as count from (
          select * from jsonb_each_text(erased)
          union all
          select * from jsonb_each_text(${JSON.stringify(Object.fromEntries(some))}::jsonb)) e (name, count)
        group by name) s)
    where organization_id = ${organization_id}`.execute(db)
}

const allChains = async (db: Db): Promise<number[]> =>
  (await db.selectFrom('network').select('network_id').execute()).map(
    ({ network_id }) => network_id,
  )

const add = (into: Erased, more: Erased): void => {
  for (const [table, count] of Object.entries(more)) into[table] = (into[table] ?? 0) + count
}
