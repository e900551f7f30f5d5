import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { isOnCitus } from '../../../test/helpers/citus.ts'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { tables } from './tables.ts'

const { db } = await freshDatabase()

test('the table types are the real schema: names, types, nullability, and no defaults', async () => {
  const { rows } = await sql<{
    table: string
    column: string
    type: string
    nullable: boolean
    default: boolean
  }>`
    select c.relname as "table", a.attname as "column", format_type(a.atttypid, a.atttypmod) as type,
      not a.attnotnull as nullable, a.atthasdef or a.attidentity <> '' as default
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and a.attnum > 0 and not a.attisdropped and c.relname not like 'schema_migration%'`.execute(
    db,
  )
  const real = rows.map((row) => [
    `${row.table}.${row.column}`,
    { type: row.type, nullable: row.nullable, default: row.default },
  ])
  const declared = Object.entries(tables).flatMap(([table, columns]) =>
    Object.entries(columns).map(([column, { type, nullable }]) => [
      `${table}.${column}`,
      { type, nullable, default: false },
    ]),
  )
  expect(Object.fromEntries(declared)).toEqual(Object.fromEntries(real))
})

test('every table of tenants names the organization', async () => {
  const shared = [
    'network',
    'asset',
    'block',
    'tracker_cursor',
    'tracker_gap',
    'pending_transaction',
  ]
  const operators = ['audit_chain', 'metric_minute', 'head_minute', 'gateway_report']
  const internal = [
    'installation_key',
    'request_nonce',
    'nonce_memory',
    'lease',
    'operational_announcement',
    'balance_reading',
    'balance_backlog',
    'balance_reopening',
    'balance_round',
    'sending_claim',
  ]
  const without = Object.entries(tables)
    .filter(([, columns]) => !('organization_id' in columns))
    .map(([name]) => name)
  expect(without.sort()).toEqual([...shared, ...operators, ...internal].sort())
})

// Citus adds a trigger.
test.skipIf(isOnCitus)(
  'nothing in the schema needs a trigger, a sequence or a default partition',
  async () => {
    const count = async (query: string) => (await sql.raw(query).execute(db)).rows
    expect(await count('select tgname from pg_trigger where not tgisinternal')).toEqual([])
    expect(await count("select relname from pg_class where relkind = 'S'")).toEqual([])
    expect(await count('select partrelid from pg_partitioned_table where partdefid <> 0')).toEqual(
      [],
    )
  },
)

test('every state column has a check of its values', async () => {
  const { rows } = await sql<{ name: string }>`
    select c.relname || '.' || a.attname as name
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and (a.attname ~ '_(state|status)$' or (c.relname, a.attname) in (
        ('credential', 'role'), ('rate_usage', 'period'), ('transfer', 'side'),
        ('operational_event', 'kind'), ('audit_event', 'actor_type'), ('audit_event', 'result'),
        ('audit_pending', 'actor_type'), ('audit_pending', 'result')))
      and not exists (select from pg_constraint k where k.conrelid = c.oid and k.contype = 'c'
        and k.conkey @> array[a.attnum])`.execute(db)
  expect(rows).toEqual([])
})
