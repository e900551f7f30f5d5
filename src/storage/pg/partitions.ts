import { sql } from 'kysely'
import type { Db } from './database.ts'

const monthOf = (time: Date, offset = 0): Date =>
  new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + offset, 1))

const partitionName = (month: Date): string =>
  `transfer_${String(month.getUTCFullYear()).padStart(4, '0')}_${String(month.getUTCMonth() + 1).padStart(2, '0')}`

const monthsBetween = (from: Date, to: Date): Date[] => {
  const months: Date[] = []
  for (let month = monthOf(from); month <= to; month = monthOf(month, 1)) months.push(month)
  return months
}

const existingPartitions = async (db: Db): Promise<Set<string>> => {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'transfer'::regclass`.execute(db)
  return new Set(rows.map(({ name }) => name))
}

const createPartition = async (db: Db, month: Date): Promise<void> => {
  const partition = sql.table(partitionName(month))
  // Attaching takes a lighter lock than creating in place: readers and writers are not held up.
  await sql`create table ${partition} (like transfer including all)
    with (autovacuum_vacuum_insert_scale_factor = 0.05)`.execute(db)
  await sql`alter table transfer attach partition ${partition}
    for values from (${sql.lit(month.toISOString())}) to (${sql.lit(monthOf(month, 1).toISOString())})`.execute(
    db,
  )
}

/** Makes sure that transfers of these times have a place, both ends included; says what it created. */
export const ensurePartitionsBetween = async (db: Db, from: Date, to: Date): Promise<string[]> => {
  const months = monthsBetween(from, to)
  const missing = (existing: Set<string>): Date[] =>
    months.filter((month) => !existing.has(partitionName(month)))
  if (missing(await existingPartitions(db)).length === 0) return []
  return await db.transaction().execute(async (trx) => {
    // Conflicts with itself only, so that one process creates and the others then find nothing missing.
    await sql`lock table transfer in share update exclusive mode`.execute(trx)
    const todo = missing(await existingPartitions(trx))
    for (const month of todo) await createPartition(trx, month)
    return todo.map(partitionName)
  })
}

/** Makes sure that the months around now exist: the last two, this one and the next three. */
export const ensurePartitions = async (db: Db, now: Date): Promise<string[]> =>
  await ensurePartitionsBetween(db, monthOf(now, -2), monthOf(now, 3))
