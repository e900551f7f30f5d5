import { access, constants, readFile, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sql } from 'kysely'
import type { ConnectionFile } from '../../app/connection-file.ts'
import { tryListen } from '../../lib/net/try-listen.ts'
import { findNewestCredential } from '../../storage/access/credentials.ts'
import type { Db } from '../../storage/pg/database.ts'
import { explain } from '../explain.ts'
import { type DoctorContext, type Finding, failure, ok, warning } from './finding.ts'

const oldestNode = 26
const gibibyte = 2 ** 30

/** The Node that runs this. */
export function checkNode(version: string = process.versions.node): Finding {
  return Number.parseInt(version, 10) >= oldestNode
    ? ok('node', `Node ${version}`)
    : failure(
        'node',
        `Node ${version} is too old.`,
        `Use Node ${oldestNode} or newer; "npm ci" installs one.`,
      )
}

/** Whether the data directory can be used, and only by this user. */
export async function* checkDataDir({ dataDir }: DoctorContext): AsyncGenerator<Finding> {
  const check = 'data directory'
  const place = await existing(dataDir)
  if (!(await mayWrite(place)))
    yield failure(
      check,
      `This user may not write to ${place}.`,
      'Run as the user that owns it, or choose another folder with --data-dir.',
    )
  else if (place !== dataDir) yield ok(check, `${dataDir} will be made at the first start`)
  else yield ok(check, dataDir)
  for (const name of ['master.key', 'connection.json']) {
    const path = join(dataDir, name)
    const stats = await stat(path).catch(() => undefined)
    if (stats && (stats.mode & 0o077) !== 0)
      yield warning(check, `Other users may read ${path}.`, `Run: chmod 600 ${path}`)
  }
}

/** How much room is left where the data is. */
export async function* checkDisk({ dataDir }: DoctorContext): AsyncGenerator<Finding> {
  const { bavail, bsize } = await statfs(await existing(dataDir))
  const free = bavail * bsize
  const detail = `${(free / gibibyte).toFixed(1)} GiB free`
  // Less than the embedded database may write between two checkpoints (`max_wal_size`).
  if (free < gibibyte / 4)
    yield failure('disk', detail, 'Free some space: the database stops when the disk is full.')
  else if (free < 2 * gibibyte) yield warning('disk', detail, 'Free some space soon.')
  else yield ok('disk', detail)
}

const mayWrite = (path: string): Promise<boolean> =>
  access(path, constants.R_OK | constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )

// The nearest folder that exists: the data directory is made at the first start.
async function existing(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  return found || dirname(path) === path ? path : existing(dirname(path))
}

const patienceMs = 3_000

/** Whether the port is free, or taken by the service of this data directory. */
export async function* checkPort({ config, dataDir }: DoctorContext): AsyncGenerator<Finding> {
  const { host, port } = config.server
  const running = await runningService(dataDir)
  if (running !== undefined) {
    yield ok('port', `the service is running at ${running}`)
    return
  }
  const error = await tryListen(host, port)
  if (error === undefined) yield ok('port', port === 0 ? 'any free one' : `${host}:${port} is free`)
  else
    yield failure(
      'port',
      explain(error) ?? error.message,
      `See who listens there: ss -ltnp "sport = :${port}" (Linux) or lsof -i :${port}`,
    )
}

async function runningService(dataDir: string): Promise<string | undefined> {
  try {
    const text = await readFile(join(dataDir, 'connection.json'), 'utf8')
    const { base_url } = JSON.parse(text) as ConnectionFile
    const signal = AbortSignal.timeout(patienceMs)
    const answer = await fetch(`${base_url}/health`, { signal })
    return answer.ok ? base_url : undefined
  } catch {
    return undefined
  }
}

// Signatures allow for more; two seconds are far beyond a synchronized clock.
const tolerableMs = 2_000
const fix = 'Set the clock, best by NTP: timedatectl set-ntp true'

/** Compares the clock of this machine with the database and with what was written before. */
export async function checkClock(
  db: Db,
  nonceWindowSeconds: number,
  now: () => number = Date.now,
): Promise<Finding> {
  const before = now()
  const { rows } = await sql<{ time: Date }>`select clock_timestamp() as time`.execute(db)
  const after = now()
  // The database looked at its clock somewhere in between.
  const time = rows[0]?.time.getTime() ?? before
  const skew = time < before ? before - time : Math.max(0, time - after)
  const newest = (await findNewestCredential(db))?.create_time.getTime() ?? 0
  if (newest - after > tolerableMs)
    return failure(
      'clock',
      `The newest key was made at ${new Date(newest).toISOString()}, after this machine's ${new Date(after).toISOString()}.`,
      fix,
    )
  const detail = `${(skew / 1000).toFixed(1)} s off the clock of the database`
  // Half of the window: a client whose clock is off by the other half would be refused.
  if (skew > (nonceWindowSeconds * 1000) / 2) return failure('clock', detail, fix)
  if (skew > tolerableMs) return warning('clock', detail, fix)
  return ok('clock', new Date(after).toISOString())
}
