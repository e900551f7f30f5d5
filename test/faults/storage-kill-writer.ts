import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { silentLog } from '../../src/lib/log.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'

// A service in small: brings the database up, commits rows, and reports each commit. It never
// writes a number twice, so a row that is there twice was doubled by the storage.
const { values } = parseArgs({
  options: { dir: { type: 'string' }, binaries: { type: 'string' }, run: { type: 'string' } },
})

const say = (line: string): boolean => process.stdout.write(`${line}\n`)

const openServer = async () => {
  try {
    return await startEmbeddedPostgres({
      dataDir: values.dir ?? '',
      binaries: values.binaries,
      log: { ...silentLog, error: (fields, message) => console.error(message, fields) },
    })
  } catch (error) {
    say(`failed ${(error as Error).message}`)
    process.exit(1)
  }
}

const server = await openServer()
const stopped = new AbortController()
say(`ready ${server.pid()} ${server.adopted ? 'adopted' : 'started'}`)
server.onRestart(() => say(`restarted ${server.pid()}`))

const pool = new pg.Pool({ ...server.connection, max: 4, connectionTimeoutMillis: 5_000 })
pool.on('error', () => {})
await pool.query('create table if not exists written (run int, id int, filler text)')

let id = 0
const write = async (): Promise<void> => {
  while (!stopped.signal.aborted) {
    const mine = ++id
    try {
      const filler = 'x'.repeat(mine % 500)
      await pool.query('insert into written values ($1, $2, $3)', [values.run, mine, filler])
      say(`written ${mine}`)
    } catch {
      await delay(10)
    }
  }
}
const writers = Promise.all([write(), write(), write(), write()])

process.once('SIGTERM', async () => {
  stopped.abort()
  await writers
  await pool.end()
  await server.stop()
})
await writers
