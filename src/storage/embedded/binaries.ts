import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, glob } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { EmbeddedPostgresError } from './errors.ts'
import { closedDirectory, type ServerUser } from './server-user.ts'

/** A directory with `postgres` and `initdb`, and what version they are. */
export type Binaries = { directory: string; version: string; major: number }

/** The oldest PostgreSQL that the schema runs on. */
export const oldestMajor = 15

const run = promisify(execFile)

const usualPlaces = [
  '/usr/lib/postgresql/*/bin', // Debian, Ubuntu
  '/usr/pgsql-*/bin', // PostgreSQL's own packages for Red Hat
  '/usr/libexec/postgresql*', // Alpine
  '/opt/homebrew/opt/postgresql@*/bin',
  '/usr/local/opt/postgresql@*/bin',
  '/Applications/Postgres.app/Contents/Versions/*/bin',
]

// The newest version first: the order of a glob is that of text.
const majorInPath = (path: string): number => Number(path.match(/(\d+)(\/bin)?$/)?.[1] ?? 0)

const systemDirectories = async function* (path: string) {
  const found = await Array.fromAsync(glob(usualPlaces))
  yield* found.sort((a, b) => majorInPath(b) - majorInPath(a))
  yield* path.split(delimiter).filter(Boolean)
}

/** The version of the binaries in a directory; undefined when there are none or they do not run. */
export const inspectBinaries = async (directory: string): Promise<Binaries | undefined> => {
  try {
    const programs = ['postgres', 'initdb'].map((name) => join(directory, name))
    // `initdb` is checked too: some packages have the server without it.
    await Promise.all(programs.map((program) => access(program, constants.X_OK)))
    const { stdout } = await run(join(directory, 'postgres'), ['-V'], { timeout: 10_000 })
    const version = stdout.match(/\(PostgreSQL\) (\d+\S*)/)?.[1]
    return version ? { directory, version, major: Number.parseInt(version, 10) } : undefined
  } catch {
    return undefined
  }
}

type Search = {
  /** The only directory to look into. */
  explicit?: string | undefined
  /** The major version of the existing data directory. */
  pinned?: number | undefined
  /** The user that must be able to run the binaries, if it is not the current one. */
  user?: ServerUser | undefined
  /** The last resort, asked only when nothing else fits. */
  npm: () => Promise<string | undefined>
  path?: string
}

const candidates = async function* ({ explicit, npm, path = process.env.PATH ?? '' }: Search) {
  if (explicit) {
    yield explicit
    return
  }
  // The system's version has security updates, so the npm package comes last.
  yield* systemDirectories(path)
  const directory = await npm()
  if (directory) yield directory
}

const reachable = async (directory: string, user: ServerUser | undefined): Promise<boolean> =>
  user === undefined || (await closedDirectory(join(directory, 'postgres'), user)) === undefined

const refuse = (
  explicit: string | undefined,
  pinned: number | undefined,
  seen: Binaries[],
): EmbeddedPostgresError => {
  const versions = [...new Set(seen.map(({ version }) => version))].join(', ')
  if (pinned !== undefined && versions) {
    return new EmbeddedPostgresError(
      `The data directory was made by PostgreSQL ${pinned}, but only PostgreSQL ${versions} is here. ` +
        `Install PostgreSQL ${pinned}, or move the data: run "portolan export" where PostgreSQL ${pinned} is, ` +
        'then "portolan import" into a new data directory.',
    )
  }
  const where = explicit ? ` in ${explicit}` : ''
  const found = versions ? ` (found ${versions})` : ''
  return new EmbeddedPostgresError(
    `There is no PostgreSQL ${pinned ?? `${oldestMajor} or newer`}${where}${found}. ` +
      'Install one, or let the service use a database server of yours with DATABASE_URL.',
  )
}

/** Finds binaries to run: those given, else the system's, else the npm package's; an existing data directory pins the major version. */
export const findBinaries = async (search: Search): Promise<Binaries> => {
  const { explicit, pinned, user } = search
  const seen: Binaries[] = []
  for await (const directory of candidates(search)) {
    const binaries = await inspectBinaries(directory)
    if (!binaries || !(await reachable(directory, user))) continue
    const { major } = binaries
    if (pinned === undefined ? major >= oldestMajor : major === pinned) return binaries
    seen.push(binaries)
  }
  throw refuse(explicit, pinned, seen)
}
