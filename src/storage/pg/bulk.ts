import { type RawBuilder, sql } from 'kysely'
import { encodeArray } from './binary-arrays.ts'
import type { Columns, RowOf } from './columns.ts'
import type { Db } from './database.ts'
import { isUniqueViolation } from './errors.ts'
import { prepared } from './prepared.ts'
import { tables } from './tables.ts'

type NullKeys<Row> = { [K in keyof Row]: null extends Row[K] ? K : never }[keyof Row]

type Bulk<Row> = Omit<Row, NullKeys<Row>> & Partial<Pick<Row, NullKeys<Row>>>

/** A row as bulk statements take it; JSON documents are given as they are, not as text. */
export type BulkRow<Name extends keyof typeof tables> = Bulk<
  RowOf<(typeof tables)[Name] extends Columns ? (typeof tables)[Name] : never>
>

const encodeValue = (value: unknown): unknown => {
  if (typeof value === 'bigint') return value.toString()
  if (Buffer.isBuffer(value)) return `\\x${value.toString('hex')}`
  return value
}

/** Rows as the one JSON parameter of a bulk statement: any number of rows, always the same text. */
export const bulkRows = (rows: readonly object[]): string =>
  JSON.stringify(
    rows.map((row) => {
      const encoded: Record<string, unknown> = {}
      for (const [key, value] of Object.entries(row)) encoded[key] = encodeValue(value)
      return encoded
    }),
  )

/** The columns of which some row has a value. */
const namesOf = (columns: Columns, rows: readonly object[]): string[] => {
  const rest = rows as readonly Record<string, unknown>[]
  const isThere = (value: unknown) => value !== undefined && value !== null
  return Object.keys(columns).filter((name) => rest.some((row) => isThere(row[name])))
}

/** The values of each column. Row by row: column by column every row would have to be fetched again. */
const columnsOf = (
  names: readonly string[],
  rows: readonly Record<string, unknown>[],
): unknown[][] => {
  const columns = names.map(() => new Array<unknown>(rows.length))
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!
    for (let index = 0; index < names.length; index++) columns[index]![at] = row[names[index]!]
  }
  return columns
}

// Of few, the text of the statement should rather be the same every time.
const manyRows = 32

/** Whether a column has the same value in every row, and one that the driver sends as it is. */
const isOneValue = (column: readonly unknown[]): boolean => {
  const [first] = column
  const isPlain = typeof first === 'string' || typeof first === 'number' || Buffer.isBuffer(first)
  return isPlain && column.every((value) => value === first)
}

/**
 * Rows as a table of a statement: one array for each column, so that the text is the same for any
 * number of rows. Costs the server half of what one JSON document costs, and less here too. The arrays
 * stand in a list of results: `from unnest(…)` of several would first write each of them down. Each
 * comes by a query of its own, which hides its length from the planner: it expects few rows, and joins
 * them by the key of the other table instead of reading that one as a whole. What many rows have in
 * common is given once.
 */
export const unnestRows = <Name extends keyof typeof tables>(
  table: Name,
  names: readonly string[],
  rows: readonly object[],
): RawBuilder<unknown> => {
  const columns: Columns = tables[table]
  const values = columnsOf(names, rows as readonly Record<string, unknown>[])
  const isCommon = names.map(
    (name, index) =>
      rows.length >= manyRows && columns[name]!.type !== 'jsonb' && isOneValue(values[index]!),
  )
  // How many rows there are, an array has to say.
  if (isCommon.every(Boolean)) isCommon[0] = false
  const arrays = names.map((name, index) => {
    const column = values[index]!
    // The length that a type may have is checked where the value is stored.
    const type = columns[name]!.type.replace(/\(.*\)/, '')
    if (isCommon[index]) return sql`${column[0]}::${sql.raw(type)} as ${sql.ref(name)}`
    const array = sql`${encodeArray(type, column)}::${sql.raw(type)}[]`
    return sql`unnest((select ${array})) as ${sql.ref(name)}`
  })
  return sql`(select ${sql.join(arrays)})`
}

/** Inserts all rows in one statement and says how many were new; rows that exist stay as they are. */
export const insertRows = async <Name extends keyof typeof tables>(
  db: Db,
  table: Name,
  rows: readonly BulkRow<Name>[],
): Promise<number> => await insertAll(db, table, rows, sql`on conflict do nothing`)

/**
 * The same for rows that are new as far as known: then looking for each of them first, as
 * `on conflict` does, would be a fifth of the work. Should one exist, all are inserted the other way.
 */
export const insertNewRows = async <Name extends keyof typeof tables>(
  trx: Db,
  table: Name,
  rows: readonly BulkRow<Name>[],
): Promise<number> => {
  if (rows.length === 0) return 0
  await sql`savepoint new_rows`.execute(trx)
  try {
    const count = await insertAll(trx, table, rows, sql``)
    await sql`release savepoint new_rows`.execute(trx)
    return count
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    await sql`rollback to savepoint new_rows`.execute(trx)
    return await insertRows(trx, table, rows)
  }
}

async function insertAll<Name extends keyof typeof tables>(
  db: Db,
  table: Name,
  rows: readonly BulkRow<Name>[],
  onConflict: RawBuilder<unknown>,
): Promise<number> {
  if (rows.length === 0) return 0
  const names = namesOf(tables[table], rows)
  // Of few rows, planning is half of the work; of many, the text depends on what they have in common.
  const { numAffectedRows } = await sql`${sql.raw(rows.length < manyRows ? prepared : '')}
    insert into ${sql.table(table)} (${sql.join(names.map((name) => sql.ref(name)))})
    select * from ${unnestRows(table, names, rows)} r
    ${onConflict}`.execute(db)
  return Number(numAffectedRows ?? 0n)
}

/**
 * Deletes rows of wallets, called `b` in the condition, at most so many, and says how many. The order must be that of an index
 * that begins with the wallet: without one, the rows of all organizations may be read to find few of one.
 */
export const deleteOfWallets = async (
  trx: Db,
  table: keyof typeof tables,
  {
    wallets,
    condition,
    order,
    limit,
  }: {
    /** Selects `wallet_id`. */
    wallets: RawBuilder<unknown>
    condition: RawBuilder<unknown>
    order: RawBuilder<unknown>
    limit: number
  },
): Promise<number> => {
  const { numAffectedRows = 0n } = await sql`
    delete from ${sql.table(table)} where ctid = any(array(
      select found.ctid from (${wallets} order by wallet_id offset 0) w cross join lateral (
        select b.ctid from ${sql.table(table)} b where b.wallet_id = w.wallet_id and ${condition}
        order by ${order} limit ${limit}) found
      limit ${limit}))`.execute(trx)
  return Number(numAffectedRows)
}
