import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import {
  erasedTables,
  erasePage,
  findDeletion,
  finishDeletion,
  requestDeletion,
} from '../../storage/access/organization-erasing.ts'
import type { Db } from '../../storage/pg/database.ts'
import { ensurePartitions } from '../../storage/pg/partitions.ts'
import { startOrganizationErasing } from './organization-erasing.ts'

const { db } = await freshDatabase()
await ensurePartitions(db, new Date())
await sql`
  insert into network (network_id, chain, network, variants, is_default, create_time, is_traced)
  values (1, 'c', 'mainnet', 'C', true, now(), false)`.execute(db)
await sql`
  insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time)
  values (${systemIds.uuid()}, 1, 'ASSET_TYPE_C', '', 0, now())`.execute(db)

const quotaNames = ['QUOTA_WALLETS', 'QUOTA_ADDRESSES']

// What outlives an organization, on purpose.
const kept = ['audit_pending', 'audit_event', 'organization_deletion']

type Column = { table: string; column: string; type: string }

const tablesOfTenants = async (): Promise<Map<string, Column[]>> => {
  const { rows } = await sql<Column>`
    select c.relname as "table", a.attname as "column", format_type(a.atttypid, null) as type
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      and exists (select from pg_attribute o where o.attrelid = c.oid
        and o.attname = 'organization_id' and not o.attisdropped)
    order by c.relname, a.attnum`.execute(db)
  return Map.groupBy(rows, ({ table }) => table)
}

describe('erasing an organization', () => {
  it('covers every table that has the column organization_id', async () => {
    const tables = [...(await tablesOfTenants()).keys()]
    expect([...erasedTables, ...kept].sort()).toEqual(tables.sort())
  })

  it('leaves no row of it in any table, whatever it has, and all rows of others', async () => {
    const [gone, stays] = [await fill(db, 12), await fill(db, 3)]
    const before = await rowsOf(db, gone)
    // Each table has rows of it, so that none of them is erased by luck.
    for (const table of erasedTables) expect(before[table], table).toBeGreaterThan(0)
    const others = await rowsOf(db, stays)
    const now = new Date()
    expect(await requestDeletion(db, gone, now)).toBe(true)
    const erasing = startErasing()
    await expect.poll(async () => (await findDeletion(db, gone))?.finish_time).toBeInstanceOf(Date)
    await erasing.stop()
    const { audit_event, organization_deletion, ...after } = await rowsOf(db, gone)
    expect(Object.values(after).every((count) => count === 0)).toBe(true)
    expect([audit_event, organization_deletion]).toEqual([12, 1])
    expect(await rowsOf(db, stays)).toEqual(others)
    // The report says what was there.
    const { erased, ...deletion } = (await findDeletion(db, gone))!
    const { audit_event: _, audit_pending: __, organization_deletion: ___, ...rows } = before
    expect(erased).toEqual({ ...rows, 'audit_event.detail': 12 })
    expect(deletion).toMatchObject({
      credential_count: 12,
      webhook_count: 11,
      canceled_transaction_count: 12,
      in_flight_transaction_count: 0,
    })
    const { rows: details } = await sql`
      select from audit_event where organization_id = ${gone} and detail is not null`.execute(db)
    expect(details).toEqual([])
  })

  it('continues after a crash, and counts no row twice', async () => {
    const gone = await fill(db, 9)
    const before = await rowsOf(db, gone)
    await requestDeletion(db, gone, new Date())
    // Pages of a process that died in between.
    for (let page = 0; page < 3; page++) await erasePage(db, { organization_id: gone, limit: 2 })
    const erasing = startErasing()
    await expect.poll(async () => (await findDeletion(db, gone))?.finish_time).toBeInstanceOf(Date)
    await erasing.stop()
    const { audit_event: _, audit_pending: __, organization_deletion: ___, ...rows } = before
    expect((await findDeletion(db, gone))?.erased).toEqual({ ...rows, 'audit_event.detail': 9 })
  })

  it('keeps the jobs that look for descriptions of items, which others may have too', async () => {
    const [gone, job_id] = [systemIds.uuid(), systemIds.uuid()]
    await sql`
      insert into job (job_id, kind, organization_id, network_id, payload, attempt_count,
        next_attempt_time, create_time, update_time)
      values (${job_id}, 'token_metadata', ${gone}, 1, '{}', 0, now(), now(), now())`.execute(db)
    const page = { organization_id: gone, limit: 2 }
    expect(await erasePage(db, page)).toMatchObject({ 'job.organization_id': 1 })
    const { rows } = await sql`select organization_id from job where job_id = ${job_id}`.execute(db)
    expect(rows).toEqual([{ organization_id: null }])
    await sql`delete from job where job_id = ${job_id}`.execute(db)
  })

  it('never waits for locks: locked rows are left for later', async () => {
    const gone = await fill(db, 2)
    await requestDeletion(db, gone, new Date())
    await db.transaction().execute(async (trx) => {
      await sql`select from transfer where organization_id = ${gone} for update`.execute(trx)
      await sql`
        select from managed_transaction where organization_id = ${gone} for update`.execute(trx)
      await sql`select from delivery where organization_id = ${gone} for update`.execute(trx)
      const held = { transfer: 0, managed_transaction: 0, delivery: 0, wallet: 0 }
      for (let round = 0; round < 3; round++)
        expect(await erasePage(db, { organization_id: gone, limit: 100 })).toMatchObject(held)
      expect(await finishDeletion(db, gone, new Date())).toBe(false)
    })
    const erasing = startErasing()
    await expect.poll(async () => (await findDeletion(db, gone))?.finish_time).toBeInstanceOf(Date)
    await erasing.stop()
  })
})

const startErasing = () =>
  startOrganizationErasing({
    ...{ db, clock: systemClock, log: silentLog, holder: systemIds.uuid() },
    ...{ pageSize: 5, pauseMs: 1, intervalMs: 10, settleMs: 0 },
  })

async function rowsOf(db: Db, organization_id: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of (await tablesOfTenants()).keys()) {
    const { rows } = await sql<{ count: number }>`
      select count(*) from ${sql.table(table)} where organization_id = ${organization_id}`.execute(
      db,
    )
    counts[table] = rows[0]!.count
  }
  return counts
}

const onePerOrganization = new Set([
  'notification_turn',
  'organization_write',
  'open_transaction_use',
])

/** Rows in every table of tenants, made of the columns that the database has. */
async function fill(db: Db, count: number): Promise<string> {
  const organization_id = systemIds.uuid()
  const tables = await tablesOfTenants()
  const parents = ['organization', 'wallet', 'webhook']
  const rest = [...tables.keys()].filter((name) => !parents.includes(name))
  const { rows: assets } = await sql<{ asset_id: string }>`select asset_id from asset`.execute(db)
  const shared = Array.from({ length: count }, () => ({
    wallet_id: systemIds.uuid(),
    webhook_id: systemIds.uuid(),
    webhook_history_id: systemIds.uuid(),
  }))
  for (const table of [...parents, ...rest]) {
    if (table === 'organization_deletion' || table === 'audit_pending') continue
    const columns = tables.get(table)!
    for (const [index, ids] of (table === 'organization' ? shared.slice(0, 1) : shared).entries()) {
      if (table.startsWith('quota') && index >= quotaNames.length) continue
      if (onePerOrganization.has(table) && index > 0) continue
      const own: Record<string, unknown> = {
        organization_id,
        ...ids,
        ...{ network_id: 1, asset_id: assets[0]!.asset_id, sequence: index + 1 },
        ...{ domain: `d-${organization_id}`, period: 'hour', role: 'ROLE_MEMBER' },
        ...{ transaction_state: 'TRANSACTION_STATE_CREATED', events: null, disable_time: null },
        ...{ webhook_state: 'WEBHOOK_STATE_ENABLED', contract_type: 'CONTRACT_TYPE_ERC20' },
        ...{ webhook_status: 'WEBHOOK_STATUS_PENDING', remove_time: null },
        // One of them is the event stream.
        ...{ sink: index === 0 ? 'stream' : null, event_kind: 'TRANSFERS' },
        ...{ transfer_state: 'TRANSFER_STATE_SUCCESS', side: 1, receipt_status: null },
        ...{ actor_type: 'ACTOR_TYPE_SERVICE', result: 'AUDIT_RESULT_SUCCEEDED' },
        ...{ kind: 'refresh_balances', asset_type: 'ASSET_TYPE_C' },
        ...{ notification_type: 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED' },
        ...(table.startsWith('quota') && { quota_name: quotaNames[index] }),
        ...(table === 'sink' && { sink_type: 'SINK_TYPE_NATS' }),
        ...(table === 'delivery' && { due_block: null }),
        ...(table === 'operational_event' && {
          kind: 'webhook_disabled',
          event_id: systemIds.uuid(),
        }),
        ...(table === 'audit_event' && {
          sequence: Number(BigInt(`0x${organization_id.slice(-6)}`)) * 100 + index,
        }),
      }
      const values = columns.map(({ column, type }) =>
        column in own ? own[column] : sample(type, index),
      )
      await sql`
        insert into ${sql.table(table)} (${sql.join(columns.map(({ column }) => sql.ref(column)))})
        values (${sql.join(values)})`.execute(db)
    }
  }
  return organization_id
}

function sample(type: string, index: number): unknown {
  if (type === 'uuid') return systemIds.uuid()
  if (type === 'text') return `t${index}`
  if (type === 'bytea') return Buffer.from(systemIds.uuid())
  if (type.startsWith('timestamp')) return new Date()
  if (type === 'date') return new Date(Date.UTC(2026, 0, 1 + index))
  if (type === 'boolean') return false
  if (type === 'jsonb') return '{}'
  if (type.endsWith('[]')) return '{}'
  return index + 1
}
