import type { ColumnType } from 'kysely'

/** A column as data: the test compares it with the real schema, the row types derive from it. */
export type Column<Value, Insert> = {
  /** The type as PostgreSQL prints it. */
  type: string
  nullable: boolean
  /** Never set: carries the TypeScript types. */
  readonly values?: { select: Value; insert: Insert }
}

/** The columns of one table. */
// biome-ignore lint/suspicious/noExplicitAny: a constraint over columns of any value
export type Columns = Record<string, Column<any, any>>

type OptionalKeys<T extends Columns> = {
  [K in keyof T]: T[K] extends Column<infer _, infer I> ? (null extends I ? K : never) : never
}[keyof T]

/** The Kysely table that a set of columns describes. */
export type TableOf<T extends Columns> = {
  [K in keyof T]: T[K] extends Column<infer V, infer I>
    ? ColumnType<V, K extends OptionalKeys<T> ? I | undefined : I, I>
    : never
}

/** A row as it is read. */
export type RowOf<T extends Columns> = {
  [K in keyof T]: T[K] extends Column<infer V, infer _> ? V : never
}

const column = <Value, Insert = Value>(type: string): Column<Value, Insert> => ({
  type,
  nullable: false,
})

/** The same column, where null is allowed and may be left out of an insert. */
export const nullable = <Value, Insert>(
  from: Column<Value, Insert>,
): Column<Value | null, Insert | null> => ({ type: from.type, nullable: true })

/** An id. */
export const uuid = column<string>('uuid')

/** Several ids. */
export const uuids = column<string[]>('uuid[]')

/** Any text. */
export const text = column<string>('text')

/** Several texts out of a closed list. */
export const someOf = <Value extends string>(): Column<Value[], Value[]> =>
  column<Value[]>('text[]')

/** Text out of a closed list. */
export const oneOf = <Value extends string>(): Column<Value, Value> => column<Value>('text')

/** Bytes: addresses, hashes, sealed secrets. */
export const bytea = column<Buffer>('bytea')

/** Several addresses or hashes. */
export const byteas = column<Buffer[]>('bytea[]')

/** A point in time. */
export const timestamptz = column<Date>('timestamp with time zone')

/** A day in UTC, `YYYY-MM-DD`. */
export const date = column<string>('date')

/** True or false. */
export const bool = column<boolean>('boolean')

/** Small integers. */
export const int2 = column<number>('smallint')

/** Integers below 2^31. */
export const int4 = column<number>('integer')

/** Counts, limits and block numbers; a value that a number cannot hold is an error when read. */
export const int8 = column<number>('bigint')

/** Several counts; the driver reads them as texts. */
export const int8s = column<string[], number[]>('bigint[]')

/** An amount, or any other uint256. */
export const amount = column<bigint>('numeric(78,0)')

/** A sum of amounts, which may be larger than each of them can be. */
export const sum = column<bigint>('numeric')

/** A JSON document; given as text, because the driver would send an array as a PostgreSQL array. */
export const jsonb = column<unknown, string>('jsonb')

/** A JSON document whose form is known, because only this service writes it. */
export const jsonOf = <Value>(): Column<Value, string> => column<Value, string>('jsonb')

/** The id of a transaction of the server. */
export const xid = column<string>('xid')

/** The id of an object of the server. */
export const oid = column<number>('oid')
