import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { access, chmod, cp, mkdtemp, readFile, realpath, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { ConnectionFile } from '../../src/app/connection-file.ts'
import { createCredential } from '../../src/domain/admin/credentials.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { systemIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { insertOrganization } from '../../src/storage/access/organizations.ts'
import { createSealer } from '../../src/storage/access/seal.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import { layoutOf } from '../../src/storage/embedded/layout.ts'
import { migrateDatabase } from '../../src/storage/migrations/migrate.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { readNumbers } from '../faults/program.ts'
import { bundledService } from '../helpers/bundle.ts'
import { installPackage } from '../helpers/debian.ts'
import { embeddedBinaries, systemBinaries } from '../helpers/postgres.ts'
import { createRandom } from '../helpers/random.ts'
import { authHeaders, nextNonce, type Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'

/** What happens between a request and its replays. */
export const events = [
  'service killed',
  'service restarted',
  'database killed',
  'rows restored in place',
  'database copied back',
  'files copied back',
  'files copied back between services',
  'dump restored',
] as const
type Event = (typeof events)[number]

/** What a campaign came to. */
export type Outcome = {
  accepted: number
  replays: number
  replayed: number
  events: string[]
  /** What this machine cannot do: without it nothing is shown about that. */
  not_run: string[]
}

const run = promisify(execFile)
const main = await bundledService()
const path = '/v1/admin/GetOrganizationByDomain'
const body = JSON.stringify({ domain: 'replay' })

type Sent = { headers: Record<string, string>; time: number }
/** A service in a process of its own. */
export type Service = { child: ChildProcess; url: string }

/** The machine's own PostgreSQL with pg_dump, installed where that is possible; that of the package comes without. */
async function findServerWithDump(
  findSystem: () => Promise<string | undefined>,
): Promise<string | undefined> {
  const hasDump = (directory: string) =>
    access(join(directory, 'pg_dump')).then(
      () => true,
      () => false,
    )
  const directory = await findSystem()
  if (directory === undefined) return undefined
  if (await hasDump(directory)) return directory
  await installPackage('postgresql-client')
  return (await hasDump(directory)) ? directory : undefined
}

/** A server whose data can be set back in every way in which operators do it. */
async function startWorld(systemServer: string | undefined) {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-replay-')))
  await chmod(dataDir, 0o711)
  const binaries = systemServer ?? (await embeddedBinaries())
  const start = () =>
    startEmbeddedPostgres({ dataDir, binaries, log: silentLog, settings: { fsync: false } })
  let server = await start()
  const { connection } = server
  const url = `postgres:///${connection.database}?host=${encodeURIComponent(connection.host)}&user=${connection.user}`

  /** Beside the installation's database, which may be replaced meanwhile. */
  const asOwner = async <answer>(
    work: (client: pg.Client) => Promise<answer>,
    database = 'postgres',
  ): Promise<answer> => {
    const client = new pg.Client({ ...connection, database })
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }
  const disconnectAll = (client: pg.Client) =>
    client.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = 'portolan' and pid <> pg_backend_pid()`)
  /** Retries while services connect again in between. */
  const insist = async (text: string) =>
    asOwner((client) =>
      waitFor(
        text,
        async () => {
          await disconnectAll(client)
          return await client.query(text).then(
            () => true,
            () => false,
          )
        },
        { timeoutMs: 60_000 },
      ),
    )
  const replaceBy = async (database: string) => {
    await insist('drop database portolan with (force)')
    await insist(`alter database ${database} rename to portolan`)
  }

  const copyFiles = async () => {
    const { data } = layoutOf(dataDir)
    await server.stop()
    await cp(data, `${data}.backup`, { recursive: true, preserveTimestamps: true })
    if (process.getuid?.() === 0) await run('chown', ['-R', '--reference', data, `${data}.backup`])
    server = await start()
    return async () => {
      await server.stop()
      await rm(data, { recursive: true })
      await rename(`${data}.backup`, data)
      server = await start()
    }
  }

  /** Each takes a backup and gives the way back to it. */
  const backups: Partial<Record<Event, () => Promise<() => Promise<void>>>> = {
    'rows restored in place': async () => {
      const tables = ['nonce_memory', 'request_nonce']
      const rows = await asOwner(
        (client) =>
          Promise.all(
            tables.map(async (name) =>
              (await client.query(`select row_to_json(t)::text as row from ${name} t`)).rows.map(
                ({ row }) => row as string,
              ),
            ),
          ),
        'portolan',
      )
      return () =>
        asOwner(async (client) => {
          await client.query('begin')
          for (const [at, name] of tables.entries()) {
            await client.query(`delete from ${name}`)
            for (const row of rows[at]!)
              await client.query(
                `insert into ${name} select * from json_populate_record(null::${name}, $1)`,
                [row],
              )
          }
          await client.query('commit')
        }, 'portolan')
    },
    'database copied back': async () => {
      await insist('create database backup template portolan')
      return () => replaceBy('backup')
    },
    'files copied back': copyFiles,
    'files copied back between services': copyFiles,
    ...(systemServer !== undefined && {
      'dump restored': async () => {
        const file = join(dataDir, 'dump')
        const way = ['-h', connection.host, '-U', connection.user]
        await run(join(binaries, 'pg_dump'), [...way, '-Fc', '-f', file, 'portolan'])
        return async () => {
          await asOwner((client) => client.query('create database restored template template0'))
          await run(join(binaries, 'pg_restore'), [...way, '-d', 'restored', file])
          await replaceBy('restored')
        }
      },
    }),
  }

  return {
    url,
    connection,
    backups,
    killDatabase: async () => {
      const pid = server.pid()
      process.kill(pid, 'SIGKILL')
      await waitFor('the database is back', () => server.pid() !== pid, { timeoutMs: 120_000 })
    },
    stop: async () => {
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Starts the service in a process of its own, without chains unless other arguments are given. */
export async function startService(
  url: string,
  master_key: string,
  more: { args?: readonly string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<Service> {
  const { args = ['--chains', 'none'], env } = more
  const dataDir = await mkdtemp(join(tmpdir(), 'portolan-replay-service-'))
  const file = join(dataDir, 'connection.json')
  const child = spawn(process.execPath, [main, 'start', ...args], {
    cwd: dataDir,
    env: {
      ...process.env,
      CI: 'true',
      PORTOLAN_PORT: '0',
      PORTOLAN_SERVER__WORKERS: '1',
      PORTOLAN_DATA_DIR: dataDir,
      PORTOLAN_DATABASE__URL: url,
      PORTOLAN_SECURITY__MASTER_KEY: master_key,
      PORTOLAN_SERVER__DRAIN_SECONDS: '0',
      PORTOLAN_LOGGING__LEVEL: 'silent',
      ...Object.fromEntries(
        ['SECOND', 'HOUR', 'DAY', 'MONTH'].map((each) => [
          `PORTOLAN_LIMITS__PER_${each}_LIMIT`,
          '-1',
        ]),
      ),
      ...env,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  let connection: ConnectionFile | undefined
  await waitFor(
    'the service is ready',
    async () => {
      if (child.exitCode !== null) throw new Error('the service ended instead of starting')
      connection = await readFile(file, 'utf8').then(JSON.parse, () => undefined)
      return connection !== undefined
    },
    { timeoutMs: 60_000 },
  )
  child.once('exit', () => rm(dataDir, { recursive: true, force: true }))
  return { child, url: (connection as ConnectionFile).base_url }
}

/** Ends a service and waits for it. */
export async function end({ child }: Service, signal: NodeJS.Signals): Promise<void> {
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

/** Sends to a service; a refused or broken connection counts as refused. */
const send = async ({ url }: Service, { headers }: Sent): Promise<boolean> => {
  const signal = AbortSignal.timeout(30_000)
  const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body, signal }).catch(
    () => undefined,
  )
  await answer?.arrayBuffer().catch(() => {})
  return answer?.status === 200
}

/**
 * Two services on one database. In each round requests are accepted, a backup is taken, more are accepted,
 * and something sets the memory of nonces back or interrupts it. Then every request that was accepted so
 * far and whose time still fits is sent again, to both services. None may be accepted.
 */
export async function runReplays(options: {
  replays: number
  seed: number
  only?: readonly Event[]
  findSystem?(): Promise<string | undefined>
  onRound?(text: string): void
}): Promise<Outcome> {
  const { replays, seed, only = events, onRound = () => {} } = options
  const outcome: Outcome = { accepted: 0, replays: 0, replayed: 0, events: [], not_run: [] }
  const needsDump = only.includes('dump restored')
  const systemServer = needsDump
    ? await findServerWithDump(options.findSystem ?? systemBinaries)
    : undefined
  if (needsDump && systemServer === undefined) {
    const reason = 'no PostgreSQL with pg_dump here, and it cannot be installed (apt-get, as root)'
    if (process.env.CI) throw new Error(`"dump restored" cannot be run: ${reason}`)
    onRound(`not run: dump restored (${reason})`)
    outcome.not_run.push('dump restored')
  }
  const possible = only.filter((event) => !outcome.not_run.includes(event))
  if (possible.length === 0) return outcome
  const random = createRandom(seed)
  const master_key = randomBytes(32).toString('hex')
  const world = await startWorld(systemServer)
  const { db, stop } = openDatabase({ connection: world.connection, log: silentLog, max: 1 })
  await migrateDatabase(db, { log: silentLog })
  const organization_id = systemIds.uuid()
  await insertOrganization(db, {
    ...{ organization_id, name: 'replay', domain: 'replay', create_time: new Date() },
  })
  const sealer = createSealer(Buffer.from(master_key, 'hex'))
  const installation = { db, clock: systemClock, ids: systemIds, sealer, log: silentLog }
  // A clock that is right, one that is late, one that is ahead.
  const leads = [0, -60_000, 45_000]
  const pairs: Pair[] = []
  for (const _ of leads)
    pairs.push(
      await createCredential(installation, { organization_id, role: 'ROLE_MEMBER', name: '' }),
    )
  await stop()

  let services = [
    await startService(world.url, master_key),
    await startService(world.url, master_key),
  ]
  const accepted: Sent[] = []

  const sign = (clock: number): Sent => {
    const time = Date.now() + leads[clock]!
    const headers = authHeaders(pairs[clock]!, { path, body, nonce: nextNonce(time) })
    return { time, headers: { 'content-type': 'application/json', ...headers } }
  }
  const accept = async (count: number) => {
    for (let at = 0; at < count; at++) {
      const request = sign(at % leads.length)
      if (await send(services[at % 2]!, request)) accepted.push(request)
    }
  }
  const serves = () =>
    waitFor(
      'both services accept requests of a right clock',
      async () => (await send(services[0]!, sign(0))) && (await send(services[1]!, sign(0))),
      { timeoutMs: 60_000 },
    )

  const happen: Partial<Record<Event, () => Promise<void>>> = {
    'service killed': async () => {
      await end(services[0]!, 'SIGKILL')
      services = [services[1]!, await startService(world.url, master_key)]
    },
    'service restarted': async () => {
      await end(services[0]!, 'SIGTERM')
      services = [services[1]!, await startService(world.url, master_key)]
    },
    'database killed': world.killDatabase,
  }

  try {
    for (let round = 0; outcome.replays < replays || round < possible.length; round++) {
      // Each once, then by chance.
      const event =
        possible[round < possible.length ? round : Math.trunc(random() * possible.length)]!
      await serves()
      await accept(12)
      const goBack = await world.backups[event]?.()
      if (goBack) await serves()
      const before = accepted.length
      await accept(24)
      if (accepted.length === before) throw new Error('nothing was accepted, so nothing is shown')
      // No service is left that remembers what the copy lacks.
      const isBetween = event === 'files copied back between services'
      if (isBetween) await Promise.all(services.map((service) => end(service, 'SIGTERM')))
      await (goBack ?? happen[event]!)()
      if (isBetween)
        services = await Promise.all(services.map(() => startService(world.url, master_key)))
      const fitting = accepted.filter(({ time }) => Date.now() - time < 290_000)
      const chosen = fitting.slice(-Math.max(60, Math.ceil(replays / 20)))
      // At once, while the services find out, and again when they accept requests.
      const replay = async (service: Service) => {
        for (const request of chosen) {
          outcome.replays++
          if (await send(service, request)) outcome.replayed++
        }
      }
      await Promise.all(services.map(replay))
      await serves()
      await Promise.all(services.map(replay))
      outcome.events.push(event)
      onRound(`${event}: ${outcome.replays} replays, ${outcome.replayed} accepted`)
      await delay(0)
    }
  } finally {
    await Promise.all(services.map((service) => end(service, 'SIGTERM')))
    await world.stop()
  }
  return { ...outcome, accepted: accepted.length }
}

if (import.meta.main) {
  const outcome = await runReplays({
    ...readNumbers({ replays: 5_000, seed: 1 }),
    onRound: (text) => console.log(text),
  })
  console.log(outcome)
  // A campaign that left something out has shown nothing about it.
  if (outcome.replayed > 0 || outcome.not_run.length > 0) process.exitCode = 1
}
