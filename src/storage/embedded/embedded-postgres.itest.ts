import {
  chmod,
  chown,
  cp,
  mkdtemp,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { copyEmbeddedDataDir } from '../../../test/helpers/initialized-data-dir.ts'
import { embeddedBinaries, systemBinaries } from '../../../test/helpers/postgres.ts'
import { silentLog } from '../../lib/log.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.ts'
import { layoutOf } from './layout.ts'
import { npmBinaries } from './npm-binaries.ts'
import { findServerUser } from './server-user.ts'

const engines = { embedded: await embeddedBinaries(), system: await systemBinaries() }
let dataDir: string
let folder: string
const servers: EmbeddedPostgres[] = []

const start = async (binaries: string | undefined, more = {}): Promise<EmbeddedPostgres> => {
  const server = await startEmbeddedPostgres({ dataDir, binaries, log: silentLog, ...more })
  servers.push(server)
  return server
}

const ask = async (server: EmbeddedPostgres, query: string) => {
  const client = new pg.Client(server.connection)
  await client.connect()
  try {
    return (await client.query(query)).rows[0]
  } finally {
    await client.end()
  }
}

/** Puts a database there that has been stopped, without the two seconds of `initdb`. */
const copyInitialized = () => copyEmbeddedDataDir(dataDir)

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'portolan-embedded-')))
  await chmod(folder, 0o711)
  dataDir = join(folder, 'data')
})

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
  await rm(folder, { recursive: true, force: true })
})

describe.each(['embedded', 'system'] as const)('with the %s binaries', (engine) => {
  const binaries = engines[engine]

  test.skipIf(!binaries)('starts, keeps its data, and is durable and private', async () => {
    const first = await start(binaries)
    expect(first.adopted).toBe(false)
    await ask(first, 'create table kept as select 1 as one')
    await first.stop()
    const second = await start(binaries)
    expect(await ask(second, 'select one from kept')).toEqual({ one: 1 })
    const settings = ['fsync', 'synchronous_commit', 'data_checksums', 'listen_addresses']
    const shown = settings.map((name) => `current_setting('${name}') as ${name}`).join(', ')
    expect(await ask(second, `select ${shown}`)).toEqual({
      fsync: 'on',
      synchronous_commit: 'on',
      data_checksums: 'on',
      listen_addresses: '',
    })
    for (const path of [layoutOf(dataDir).socket, layoutOf(dataDir).data]) {
      expect((await stat(path)).mode & 0o777).toBe(0o700)
    }
  })

  test.skipIf(!binaries)('comes back by itself when it is killed', async () => {
    const server = await start(binaries)
    const pid = server.pid()
    const restarted = new Promise<void>((resolve) => server.onRestart(resolve))
    process.kill(pid, 'SIGKILL')
    await restarted
    expect(server.pid()).not.toBe(pid)
    expect(await ask(server, 'select 1 as one')).toEqual({ one: 1 })
  })
})

test('settings can be overridden, but not what keeps the server private', async () => {
  await copyInitialized()
  const server = await start(engines.embedded, {
    settings: { work_mem: '12MB', listen_addresses: '*', log_line_prefix: "it's " },
  })
  const query = `select current_setting('work_mem') as memory, current_setting('listen_addresses') as addresses,
    current_setting('log_line_prefix') as prefix`
  expect(await ask(server, query)).toEqual({ memory: '12MB', addresses: '', prefix: "it's " })
})

test('a second start names the first', async () => {
  await copyInitialized()
  await start(engines.embedded)
  await expect(start(engines.embedded)).rejects.toThrow(
    `Another Portolan (pid ${process.pid}) is using ${dataDir}.`,
  )
})

test('a pid file whose process id belongs to another process now does not stop a start', async () => {
  const { data } = layoutOf(dataDir)
  await copyInitialized()
  const owner = await stat(data)
  const file = join(data, 'postmaster.pid')
  // The id of a living process that is no server; an unprivileged start may not even signal it.
  await writeFile(file, `1\n${data}\n1700000000\n5432\n${layoutOf(dataDir).socket}\n\n`, {
    mode: 0o600,
  })
  await chown(file, owner.uid, owner.gid)
  const server = await start(engines.embedded)
  expect(server.adopted).toBe(false)
  expect(await readFile(file, 'utf8')).toMatch(new RegExp(`^${server.pid()}\n`))
})

test('an empty pid file and half-made data of a crash do not stop a start', async () => {
  const { staging, data } = layoutOf(dataDir)
  await copyInitialized()
  await cp(data, `${staging}old`, { recursive: true })
  await rm(data, { recursive: true })
  const server = await start(engines.embedded)
  await ask(server, 'create table kept as select 1 as one')
  await server.stop()
  await writeFile(join(data, 'postmaster.pid'), '')
  expect(await ask(await start(engines.embedded), 'select one from kept')).toEqual({ one: 1 })
})

test.skipIf(!engines.system)(
  'data of another major version is refused with the way out',
  async () => {
    await copyInitialized()
    await expect(start(engines.system)).rejects.toThrow(
      /made by PostgreSQL 18, but only PostgreSQL 1[5-7][.\d]* is here.*portolan export/,
    )
  },
)

test('an existing data directory chooses the binaries that fit it', async () => {
  await copyInitialized()
  expect((await start(undefined)).version).toMatch(/^18\./)
})

test('a directory created by another program is not used', async () => {
  const { root, socket } = layoutOf(dataDir)
  await copyInitialized()
  await rm(socket, { recursive: true, force: true })
  await symlink(tmpdir(), socket)
  await expect(start(engines.embedded)).rejects.toThrow(`${root}/run already exists`)
})

test('a start can be given up', async () => {
  const giveUp = new AbortController()
  const starting = start(engines.embedded, { signal: giveUp.signal })
  await vi.waitFor(() => stat(layoutOf(dataDir).root), { timeout: 30_000 })
  giveUp.abort(new Error('enough'))
  await expect(starting).rejects.toThrow('enough')
  expect((await start(engines.embedded)).adopted).toBe(false)
})

test.skipIf(process.getuid?.() !== 0)('binaries below a closed directory are copied', async () => {
  const closed = await mkdtemp(join(tmpdir(), 'portolan-closed-'))
  const installed = join(engines.embedded, '../..')
  await cp(installed, closed, { recursive: true, verbatimSymlinks: true })
  await chmod(closed, 0o700)
  await copyInitialized()
  try {
    const user = await findServerUser()
    const copyTo = join(dataDir, 'binaries')
    const binaries = await npmBinaries({ copyTo, user, directory: closed })
    expect(binaries?.startsWith(copyTo)).toBe(true)
    expect((await start(binaries)).version).toMatch(/^18\./)
  } finally {
    await rm(closed, { recursive: true, force: true })
  }
})
