// Applies the plan to a real Citus: three servers of PostgreSQL with the extension, the schema as the service migrates it,
// the keys changed as the plan says, every table at its place. Debian does not package the extension, so this is
// no test of the suites: `node test/citus/distribute.ts` on a machine whose PostgreSQL has it.

import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { silentLog } from '../../src/lib/log.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import { migrateDatabase } from '../../src/storage/migrations/migrate.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { systemBinaries } from '../helpers/postgres.ts'
import { allowedConstraints } from './allowed.ts'
import { type Placement, placements } from './plan.ts'

const binaries = await systemBinaries()
if (binaries === undefined) throw new Error('there is no PostgreSQL here')
const folder = await realpath(await mkdtemp(join(tmpdir(), 'portolan-citus-')))
await chmod(folder, 0o711)

const servers: Awaited<ReturnType<typeof startEmbeddedPostgres>>[] = []
const startServer = async (name: string) => {
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, name),
    binaries,
    log: silentLog,
    settings: {
      ...{ fsync: false, shared_preload_libraries: 'citus', wal_level: 'logical' },
      // One transaction over several machines ends in two phases.
      ...{ max_prepared_transactions: 50, max_connections: 100 },
    },
  })
  servers.push(server)
  const client = new pg.Client(server.connection)
  await client.connect()
  await client.query('create extension citus')
  return { client, connection: server.connection }
}

/** Puts `organization_id` in front of the columns of a unique index. */
async function extendKey(client: pg.Client, name: string): Promise<void> {
  const { rows } = await client.query<{
    at: string
    isPrimary: boolean
    definition: string
    columns: string
  }>(
    `select i.indrelid::regclass::text as at, i.indisprimary as "isPrimary",
       pg_get_indexdef(i.indexrelid) as definition,
       (select string_agg(quote_ident(a.attname), ', ' order by k.place)
        from unnest(i.indkey) with ordinality k(number, place)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number) as columns
     from pg_index i where i.indexrelid = $1::regclass`,
    [name],
  )
  const { at, isPrimary, definition, columns } = rows[0]!
  if (!isPrimary) {
    await client.query(`drop index ${name}`)
    await client.query(definition.replace('(', '(organization_id, '))
    return
  }
  await client.query(`alter table ${at} drop constraint ${name}`)
  await client.query(`alter table ${at} add primary key (organization_id, ${columns})`)
}

const placedAt = (placement: Placement) =>
  Object.keys(placements).filter((table) => placements[table] === placement)

try {
  const { client, connection } = await startServer('coordinator')
  const others = [await startServer('shards-1'), await startServer('shards-2')]
  const { db, stop } = openDatabase({ connection, log: silentLog })
  await migrateDatabase(db, { log: silentLog })
  await stop()
  await client.query('select citus_set_coordinator_host($1, $2)', [
    ...[connection.host, connection.port],
  ])
  for (const { connection: other } of others)
    await client.query('select citus_add_node($1, $2)', [other.host, other.port])
  for (const name of allowedConstraints.foreign) {
    const { rows } = await client.query<{ at: string }>(
      'select conrelid::regclass::text as at from pg_constraint where conname = $1 and conparentid = 0',
      [name],
    )
    await client.query(`alter table ${rows[0]!.at} drop constraint ${name}`)
  }
  for (const name of allowedConstraints.keys) await extendKey(client, name)
  for (const table of placedAt('reference'))
    await client.query('select create_reference_table($1)', [table])
  const [first, ...further] = placedAt('organization_id')
  await client.query(`select create_distributed_table($1, 'organization_id')`, [first])
  for (const table of further)
    await client.query(
      `select create_distributed_table($1, 'organization_id', colocate_with => $2)`,
      [table, first],
    )
  const { rows } = await client.query<{ type: string; count: number }>(
    'select citus_table_type as type, count(*)::int from citus_tables group by 1 order by 1',
  )
  const { rows: version } = await client.query<{ citus_version: string }>('select citus_version()')
  console.log(version[0]?.citus_version, rows)
  const distributed = rows.find(({ type }) => type === 'distributed')?.count
  if (distributed !== 1 + further.length) process.exitCode = 1
  await Promise.all([client, ...others.map((one) => one.client)].map((one) => one.end()))
} finally {
  for (const server of servers) await server.stop()
  await rm(folder, { recursive: true, force: true })
}
