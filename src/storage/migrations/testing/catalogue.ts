// Reads the schema of a database for the tests of migrations. Production code does not import this folder.

import type pg from 'pg'

// Each statement gives one line per object. Lists are sorted, so that the order of creation does not matter.
const statements = [
  `select concat_ws(' ', 'table', c.relname, c.relkind, c.relpersistence, pg_get_partkeydef(c.oid),
     array(select option from unnest(c.reloptions) option order by option)) as line
   from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S')`,
  `select concat_ws(' ', 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
     a.attstorage, a.attcompression, a.attidentity, a.attgenerated, a.attstattarget,
     pg_get_expr(d.adbin, d.adrelid)) as line
   from pg_class c join pg_attribute a on a.attrelid = c.oid
   left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
   where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0
     and not a.attisdropped`,
  `select concat_ws(' ', 'constraint', k.conrelid::regclass, k.conname, k.convalidated,
     pg_get_constraintdef(k.oid)) as line
   from pg_constraint k where k.connamespace = 'public'::regnamespace`,
  `select concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid), i.indisvalid) as line
   from pg_index i join pg_class c on c.oid = i.indexrelid where c.relnamespace = 'public'::regnamespace`,
  `select 'function ' || pg_get_functiondef(oid) as line from pg_proc where pronamespace = 'public'::regnamespace`,
  `select 'trigger ' || pg_get_triggerdef(oid) as line from pg_trigger where not tgisinternal`,
]

/** The schema of a database as sorted lines, one per table, column, constraint, index, function and trigger. */
export const describeSchema = async (pool: pg.Pool): Promise<string[]> => {
  const lines: string[] = []
  for (const statement of statements) {
    const { rows } = await pool.query<{ line: string }>(statement)
    lines.push(...rows.map(({ line }) => line))
  }
  return lines.sort()
}
