// All tests with databases on Citus instead of the PostgreSQL that comes with the service: a coordinator and two more
// machines. Debian does not package the extension, so `npm test` does not do it (docs/scale-database.md).

import pg from 'pg'
import { silentLog } from '../../src/lib/log.ts'
import type { EmbeddedConnection } from '../../src/storage/embedded/layout.ts'
import { distributeTransfers } from '../../src/storage/migrations/distribute.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'

/** Set to run the tests on Citus. The PostgreSQL of the machine must have the extension. */
export const isOnCitus = process.env.TESTS_ON_CITUS !== undefined

/** What each of the servers needs. */
export const citusSettings = {
  ...{ shared_preload_libraries: 'citus', wal_level: 'logical' },
  // A transaction over several machines ends in two phases.
  max_prepared_transactions: 200,
  // Each database has a process of the extension.
  max_worker_processes: 100,
  'citus.shard_count': 4,
}

/** Runs statements on one server. */
export const onServer = async (
  connection: EmbeddedConnection,
  work: (client: pg.Client) => Promise<unknown>,
): Promise<void> => {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

/** Makes the machines of a migrated database, which is on the coordinator, and distributes its transfers over them. */
export async function distributeDatabase(
  coordinator: EmbeddedConnection,
  others: readonly EmbeddedConnection[],
): Promise<void> {
  const { database } = coordinator
  for (const server of others) {
    await onServer(server, (client) => client.query(`create database ${database}`))
    await onServer({ ...server, database }, (client) => client.query('create extension citus'))
  }
  await onServer(coordinator, async (client) => {
    await client.query('create extension citus')
    await client.query('select citus_set_coordinator_host($1, $2)', [
      ...[coordinator.host, coordinator.port],
    ])
    for (const { host, port } of others)
      await client.query('select citus_add_node($1, $2)', [host, port])
  })
  const { db, stop } = openDatabase({ connection: coordinator, log: silentLog })
  try {
    await distributeTransfers(db)
  } finally {
    await stop()
  }
}

/** Removes what the other machines have of a database. */
export async function dropOnOthers(
  database: string,
  others: readonly EmbeddedConnection[],
): Promise<void> {
  for (const server of others)
    await onServer(server, (client) =>
      client.query(`drop database if exists ${database} with (force)`),
    )
}
