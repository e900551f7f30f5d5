import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'
import type { Tables } from './tables.ts'

type BulkValue = string | number | bigint | boolean | Date | Buffer | null | undefined

const encodeValue = (value: BulkValue): string | number | boolean | null | undefined => {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (Buffer.isBuffer(value)) return `\\x${value.toString('hex')}`
  return value
}

/** Rows as the one JSON parameter of a bulk statement: any number of rows, always the same text. */
export const bulkRows = (rows: readonly Record<string, BulkValue>[]): string =>
  JSON.stringify(
    rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([key, value]) => [key, encodeValue(value)])),
    ),
  )

const columnList = (names: readonly string[]): RawBuilder<unknown> =>
  sql.join(names.map((name) => sql.ref(name)))

/** Inserts all rows in one statement and says how many were new; rows that exist stay as they are. */
export const insertRows = async <Name extends keyof Tables>(
  db: Db,
  table: Name,
  rows: readonly Record<string, BulkValue>[],
): Promise<number> => {
  const [first] = rows
  if (!first) return 0
  const columns = columnList(Object.keys(first))
  const { numAffectedRows } = await sql`
    insert into ${sql.table(table)} (${columns})
    select ${columns}
    from json_populate_recordset(null::${sql.table(table)}, ${bulkRows(rows)}::text::json)
    on conflict do nothing`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
