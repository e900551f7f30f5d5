// Rows for the tests of archives. Production code does not import this folder.

import type pg from 'pg'

type Column = {
  name: string
  type: string
  nullable: boolean
  checks: string[]
  target: string | null
  target_column: string | null
}

const awkward = String.raw`E'\t\n\r\\N \\. ''q'' ünï 🦊 ' || i`

const wordsIn = (check: string) => [...check.matchAll(/'([A-Za-z0-9_]+)'::text/g)]

/** A check may name several columns: what it compares with this one counts, and all of it where that is not clear. */
const textOf = (name: string, checks: string[]): string => {
  const own = new RegExp(
    `\\b${name} (?:=|<@) (?:ANY \\(+)?(?:ARRAY\\[[^\\]]*\\]|'[^']*'::text)`,
    'g',
  )
  const compared = checks.flatMap((check) => check.match(own) ?? [])
  const choices = (compared.length > 0 ? compared : checks).flatMap(wordsIn)
  if (choices.length > 0) {
    const list = choices.map(([, choice]) => `'${choice}'`).join(', ')
    return `(array[${list}])[1 + i % ${choices.length}]`
  }
  return checks.some((check) => check.includes('~')) ? `'plain-' || i` : awkward
}

const intOf = (checks: string[]): string => {
  const list = checks.map((check) => /ANY \(ARRAY\[([\d, ]+)\]/.exec(check)?.[1]).find(Boolean)
  return list ? `(array[${list}])[1 + i % ${list.split(',').length}]` : 'i'
}

const literalOf = (table: string, { name, type, checks }: Column): string => {
  const seed = `'${table}.${name}.' || i`
  if (type.startsWith('numeric')) return type === 'numeric(78,0)' ? '2::numeric ^ 256 - i' : 'i'
  if (type === 'text') return textOf(name, checks)
  if (type === 'text[]') return `array[${textOf(name, checks)}]`
  if (type === 'uuid') return `md5(${seed})::uuid`
  if (type === 'uuid[]') return `array[md5(${seed})::uuid]`
  if (type === 'bytea') return String.raw`'\x00ff0a5c2e'::bytea || int4send(i)`
  if (type === 'bytea[]') return String.raw`array['\x00ff0a5c2e'::bytea || int4send(i), '']`
  if (type === 'bigint[]') return 'array[i, i + 1]'
  if (type === 'jsonb') return `jsonb_build_object('i', i, 'text', ${awkward})`
  if (type === 'date') return `date '2026-01-01' + i`
  if (type === 'boolean') return 'i % 2 = 0'
  if (type.startsWith('timestamp')) {
    return `timestamptz '2026-09-20 00:00:00.123456+00' + i * interval '1 day'`
  }
  return intOf(checks)
}

const expressionOf = (table: string, column: Column): string => {
  if (column.target) {
    return `(select ${column.target_column} from ${column.target} order by 1 offset i - 1 limit 1)`
  }
  const value = literalOf(table, column)
  return column.nullable ? `case when i % 3 > 0 then ${value} end` : value
}

/** Whether a check lets the table have one row only. */
const isSingle = ({ checks }: Column): boolean =>
  checks.some((check) => /^CHECK \(\(\w+ = 1\)\)$/.test(check))

const readColumns = async (pool: pg.Pool, table: string): Promise<Column[]> => {
  const { rows } = await pool.query<Column>(
    `select quote_ident(a.attname) as name, format_type(a.atttypid, a.atttypmod) as type, not a.attnotnull as nullable,
       array(select pg_get_constraintdef(k.oid) from pg_constraint k
         where k.conrelid = a.attrelid and k.contype = 'c' and k.conkey @> array[a.attnum]) as checks,
       f.confrelid::regclass::text as target,
       (select attname from pg_attribute where attrelid = f.confrelid and attnum = f.confkey[1]) as target_column
     from pg_attribute a
     left join pg_constraint f on f.conrelid = a.attrelid and f.contype = 'f' and f.conkey = array[a.attnum]
     where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
       and a.attidentity = ''
     order by a.attnum`,
    [table],
  )
  return rows
}

const tableNames = async (pool: pg.Pool): Promise<string[]> => {
  const { rows } = await pool.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relpersistence = 'p'
       and relname not like 'schema_migration%' order by relname`,
  )
  return rows.map(({ name }) => name)
}

/** Puts awkward rows into every table there is, whatever migrations will come. */
export const fillTables = async (pool: pg.Pool, count: number): Promise<void> => {
  const waiting = new Map<string, Column[]>()
  for (const table of await tableNames(pool)) waiting.set(table, await readColumns(pool, table))
  while (waiting.size > 0) {
    const ready = [...waiting].find(([name, columns]) =>
      columns.every(({ target }) => !target || target === name || !waiting.has(target)),
    )
    if (!ready) throw new Error('tables refer to each other in a circle')
    const [table, columns] = ready
    const names = columns.map(({ name }) => name).join(', ')
    const values = columns.map((column) => expressionOf(table, column)).join(', ')
    const rows = columns.some(isSingle) ? Math.min(count, 1) : count
    await pool.query(
      `insert into ${table} (${names}) select ${values} from generate_series(1, ${rows}) as i`,
    )
    waiting.delete(table)
  }
}

/** The rows of every table that an archive holds, in a few words, to compare databases. */
export const digestTables = async (pool: pg.Pool): Promise<Record<string, string>> => {
  const digests: Record<string, string> = {}
  for (const table of await tableNames(pool)) {
    if (table === 'request_nonce') continue
    const { rows } = await pool.query(
      `select count(*) || ' ' || coalesce(md5(string_agg(t::text, E'\\n' order by t::text collate "C")), '-') as digest
       from ${table} t`,
    )
    digests[table] = rows[0].digest
  }
  return digests
}
