import pg from 'pg'
import { EmbeddedPostgresError } from './errors.ts'
import { connectionOf, type Layout } from './layout.ts'

/** What is behind the socket: a working server, one that starts or stops, or none. */
export type Answer = { state: 'ready'; version: string } | { state: 'busy' } | { state: 'silent' }

// SQLSTATE codes: starting or stopping; the database exists; the socket has no listener.
const cannotConnectNow = '57P03'
const alreadyThere = new Set(['42P04', '23505'])
const absent = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'])

const ask = async (client: pg.Client, layout: Layout): Promise<Answer> => {
  const { user, database } = connectionOf(layout)
  const { rows } = await client.query(
    `select current_setting('data_directory') as data, current_setting('server_version_num')::int as version,
       exists (select from pg_database where datname = $1) as created`,
    [database],
  )
  const { data, version, created } = rows[0]
  if (data !== layout.data) {
    throw new EmbeddedPostgresError(
      `The PostgreSQL that answers in ${layout.socket} serves ${data} and not ${layout.data}; stop it first.`,
    )
  }
  if (!created)
    await client.query(`create database ${database} owner ${user}`).catch((error: unknown) => {
      // Two may ask at the same moment; the other one has made it.
      if (!alreadyThere.has((error as { code?: string }).code ?? '')) throw error
    })
  return { state: 'ready', version: `${Math.trunc(version / 10_000)}.${version % 10_000}` }
}

/** Asks the server of a layout how it is, and gives it the service's database when it has none yet. */
export const probe = async (layout: Layout): Promise<Answer> => {
  const client = new pg.Client({
    // `postgres` exists in every server; ours may have to be created first.
    ...connectionOf(layout),
    database: 'postgres',
    ssl: false,
    connectionTimeoutMillis: 5_000,
    query_timeout: 30_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    return await ask(client, layout)
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw error
    const { code, message } = error as { code?: string; message: string }
    if (code === cannotConnectNow) return { state: 'busy' }
    // pg reports a server that hangs up in the middle of the exchange without a code.
    if (absent.has(code ?? '') || /terminated|timeout/i.test(message)) return { state: 'silent' }
    throw error
  } finally {
    await client.end().catch(() => {})
  }
}
