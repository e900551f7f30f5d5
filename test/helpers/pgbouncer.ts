import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { EmbeddedConnection } from '../../src/storage/embedded/layout.ts'
import { findProgram } from './brokers.ts'
import { freePort } from './free-port.ts'
import { waitFor } from './wait-for.ts'

/** A PgBouncer in transaction mode before a database. */
export type PgBouncer = {
  /** Through the pooler. */
  url: string
  /** To the server itself. */
  directUrl: string
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

/** Starts one with few server sessions, so that clients share them; undefined where it cannot be had. */
export const startPgBouncer = async (
  { host, user, database, port: serverPort }: EmbeddedConnection,
  { sessions = 4, settings = '' } = {},
): Promise<PgBouncer | undefined> => {
  const program = await findProgram('pgbouncer', '--version')
  if (program === undefined) return undefined
  const { uid, gid } = await stat(host)
  const directory = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  const port = await freePort()
  const file = join(directory, 'pgbouncer.ini')
  await writeFile(join(directory, 'users.txt'), `"${user}" ""\n`)
  await writeFile(
    file,
    `[databases]
${database} = host=${host} port=${serverPort} dbname=${database} user=${user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${directory}/users.txt
pool_mode = transaction
default_pool_size = ${sessions}
max_client_conn = 500
${settings}
`,
  )
  for (const path of [directory, file, join(directory, 'users.txt')]) await chown(path, uid, gid)
  let child: ReturnType<typeof spawn> | undefined
  const endWithUs = () => child?.kill('SIGKILL')
  process.once('exit', endWithUs)
  const url = `postgres://${user}@127.0.0.1:${port}/${database}`

  const isUp = async (): Promise<boolean> => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query('select 1')
      return true
    } catch {
      return false
    } finally {
      await client.end().catch(() => {})
    }
  }
  const start = async () => {
    // It refuses to run as root; Debian puts it where other users do not look.
    const asOwner = process.getuid?.() === 0 ? { uid, gid } : {}
    child = spawn(program, ['-q', file], { stdio: 'ignore', ...asOwner })
    await waitFor('pgbouncer answers', isUp, { everyMs: 50 })
  }
  const kill = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  await start()
  return {
    url,
    directUrl: `postgres:///${database}?host=${encodeURIComponent(host)}&user=${user}`,
    start,
    kill,
    stop: async () => {
      process.off('exit', endWithUs)
      await kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
