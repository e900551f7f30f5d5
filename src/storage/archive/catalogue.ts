import type pg from 'pg'
import type { Partition } from './format.ts'

/** A table whose rows are moved; a partitioned one stands for its partitions. */
export type Table = { name: string; columns: string[]; partitions: Partition[] }

/** A foreign key, in words that the server understands. */
export type ForeignKey = { table: string; name: string; definition: string }

// The target has its own record of its own migrations.
const ownTables = ['schema_migration', 'schema_migration_lock', 'schema_migration_range']

const readPartitions = async (client: pg.PoolClient, table: string): Promise<Partition[]> => {
  // From the catalogue of the server and not from our own list, so that tables of every version are
  // moved.
  const { rows } = await client.query<Partition>(
    `select c.relname as name, p.relname as parent, pg_get_expr(c.relpartbound, c.oid) as bound,
       coalesce(c.reloptions, '{}') as options,
       case when c.relkind = 'p' then pg_get_partkeydef(c.oid) end as key
     from pg_partition_tree(format('public.%I', $1::text)::regclass) t
     join pg_class c on c.oid = t.relid join pg_class p on p.oid = t.parentrelid
     where t.level > 0 order by t.level, c.relname`,
    [table],
  )
  return rows
}

/** The tables of the installation, as the server describes them. */
export const readTables = async (client: pg.PoolClient): Promise<Table[]> => {
  const { rows } = await client.query<{ name: string; columns: string[]; partitioned: boolean }>(
    `select c.relname as name, c.relkind = 'p' as partitioned,
       array(select a.attname::text from pg_attribute a
         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
         order by a.attnum) as columns
     from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
       -- Unlogged tables concern this server only.
       and c.relpersistence = 'p' and not c.relispartition and c.relname <> all ($1)
       and not exists (select from pg_depend d
         where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
     order by c.relname`,
    [ownTables],
  )
  const tables: Table[] = []
  for (const { name, columns, partitioned } of rows) {
    const partitions = partitioned ? await readPartitions(client, name) : []
    tables.push({ name, columns, partitions })
  }
  return tables
}

/** The sequences that have been used, with the last value they gave. */
export const readSequences = async (
  client: pg.PoolClient,
): Promise<{ name: string; lastValue: string }[]> => {
  const { rows } = await client.query(
    `select sequencename as name, last_value::text as "lastValue" from pg_sequences
     where schemaname = 'public' and last_value is not null order by sequencename`,
  )
  return rows
}

/** The foreign keys between the tables; those of partitions follow their parents'. */
export const readForeignKeys = async (client: pg.PoolClient): Promise<ForeignKey[]> => {
  const { rows } = await client.query<ForeignKey>(
    `select r.relname as table, k.conname as name, pg_get_constraintdef(k.oid) as definition
     from pg_constraint k join pg_class r on r.oid = k.conrelid
     where k.contype = 'f' and k.conparentid = 0 and k.connamespace = 'public'::regnamespace
     order by r.relname, k.conname`,
  )
  return rows
}

/** The name of the newest migration; undefined when the database has none. */
export const readSchemaVersion = async (client: pg.PoolClient): Promise<string | undefined> => {
  const { rows } = await client.query<{ name: string | null }>(
    `select to_regclass('public.schema_migration')::text as name`,
  )
  if (!rows[0]?.name) return undefined
  const newest = await client.query<{ name: string }>(
    'select name from schema_migration order by name desc limit 1',
  )
  return newest.rows[0]?.name
}
