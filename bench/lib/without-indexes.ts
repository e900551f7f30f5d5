import { sql } from 'kysely'
import type { Db } from '../../src/storage/pg/database.ts'

/** Drops a table's key and indexes, to be built when it is filled, which is much faster. */
export async function withoutIndexes(trx: Db, table: string): Promise<() => Promise<void>> {
  await sql`set local maintenance_work_mem = '512MB'`.execute(trx)
  const { rows: indexes } = await sql<{ indexname: string; indexdef: string }>`
    select indexname, indexdef from pg_indexes
    where tablename = ${table} and indexname <> ${`${table}_pkey`}`.execute(trx)
  const { rows: keys } = await sql<{ definition: string }>`
    select pg_get_constraintdef(oid) as definition from pg_constraint
    where conrelid = ${table}::regclass and contype = 'p'`.execute(trx)
  for (const { indexname } of indexes) await sql`drop index ${sql.ref(indexname)}`.execute(trx)
  const key = sql`alter table ${sql.table(table)}`
  await sql`${key} drop constraint ${sql.ref(`${table}_pkey`)}`.execute(trx)
  return async () => {
    const [{ definition } = { definition: '' }] = keys
    await sql`${key} add constraint ${sql.ref(`${table}_pkey`)} ${sql.raw(definition)}`.execute(trx)
    for (const { indexdef } of indexes)
      await sql.raw(indexdef.replace(' ON ONLY ', ' ON ')).execute(trx)
  }
}
