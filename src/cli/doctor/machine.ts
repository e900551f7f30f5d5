import { access, constants, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DoctorContext } from './finding.ts'
import { type Finding, failure, ok, warning } from './finding.ts'

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

async function existing(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  return found || dirname(path) === path ? path : existing(dirname(path))
}
