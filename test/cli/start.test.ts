import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { copyInitializedDataDir } from '../helpers/initialized-data-dir.ts'
import { waitFor } from '../helpers/wait-for.ts'
import {
  databasePid,
  fast,
  freshFolder,
  type Outcome,
  portolan,
  runCommand,
  startPortolan,
  startService,
} from './portolan.ts'

const secretsIn = ({ admin, member }: { admin?: object; member?: object }): string[] =>
  [admin, member].flatMap((pair) => {
    const { api_key, api_secret } = pair as { api_key: string; api_secret: string }
    return [api_key, api_secret]
  })

const ask = (dataDir: string) =>
  runCommand(['call', 'admin', 'GetOrganizationByDomain', '{"domain":"demo"}'], { dataDir })

const slow = { timeout: 240_000 }

test('starts from nothing, answers, stops, and continues with the same data', slow, async () => {
  const dataDir = join(await freshFolder(), 'data')
  const first = await startService(dataDir, { isFirstStart: true })
  const file = join(dataDir, 'connection.json')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect((await ask(dataDir)).stdout).toContain('"domain": "demo"')
  expect(await databasePid(dataDir)).toBeTypeOf('number')

  const { code, stdout, stderr } = await first.stop('SIGTERM')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(await databasePid(dataDir)).toBeUndefined()
  await expect(readFile(file)).rejects.toThrow('ENOENT')

  const secrets = secretsIn(first.connection)
  for (const secret of secrets) expect(stdout).not.toContain(secret)

  const second = await startService(dataDir)
  expect(secretsIn(second.connection)).toEqual(secrets)
  expect(second.connection.organization_id).toBe(first.connection.organization_id)
  expect((await ask(dataDir)).code).toBe(0)
  expect((await second.stop('SIGINT')).code).toBe(0)
  expect(await databasePid(dataDir)).toBeUndefined()
})

test('continues when the reader of its log is gone, and leaves nothing running', slow, async () => {
  const dataDir = join(await freshFolder(), 'data')
  const { child, connection, stop } = await startService(dataDir)
  child.stdout?.destroy()
  child.stderr?.destroy()
  expect((await ask(dataDir)).code).toBe(0)
  expect((await fetch(`${connection.base_url}/ready`)).status).toBe(200)
  // Writes to the unread log, before the database is stopped.
  expect((await stop()).code).toBe(0)
  expect(await databasePid(dataDir)).toBeUndefined()
})

test('starts again after it was killed, with the database that was left', slow, async () => {
  const dataDir = join(await freshFolder(), 'data')
  const first = await startService(dataDir)
  const pid = await databasePid(dataDir)
  await first.stop('SIGKILL')
  expect(await databasePid(dataDir)).toBe(pid)

  const listed = await runCommand(['organizations', 'list', '--json'], { dataDir })
  expect(listed).toMatchObject({ code: 0, stderr: '' })
  // A command leaves the server as it found it.
  expect(await databasePid(dataDir)).toBe(pid)

  // Nor does a start that fails leave the file of the killed one.
  const { port } = new URL(first.connection.base_url)
  const other = createServer().listen(Number(port), '127.0.0.1')
  await once(other, 'listening')
  expect((await portolan(['start', '--chains', 'none', '--port', port], { dataDir })).code).toBe(1)
  await expect(stat(join(dataDir, 'connection.json'))).rejects.toThrow('ENOENT')
  other.close()

  const second = await startService(dataDir)
  expect(secretsIn(second.connection)).toEqual(secretsIn(first.connection))
  expect((await ask(dataDir)).code).toBe(0)
  await second.stop()
  expect(await databasePid(dataDir)).toBeUndefined()
})

test('a signal during the start stops it as soon as it can', async () => {
  const dataDir = join(await freshFolder(), 'data')
  const starting = startService(dataDir, { isFirstStart: true }).catch(() => undefined)
  const pidFile = join(dataDir, 'portolan.pid')
  let pid = 0
  while (!pid) {
    await delay(10)
    pid = Number(await readFile(pidFile, 'utf8').catch(() => ''))
  }
  process.kill(pid, 'SIGTERM')
  const child = (await starting)?.child
  // It may have come up for a moment; a second signal would force it.
  if (child) expect(child.exitCode ?? (await once(child, 'exit'))[0]).toBe(0)
  expect(await databasePid(dataDir)).toBeUndefined()
})

test('a signal while the local chains start breaks that off', slow, async () => {
  const dataDir = join(await freshFolder(), 'data')
  const env = { CI: '1', PORTOLAN_LOGGING__LEVEL: 'debug' }
  const starting = startPortolan(['start', '--chains', 'c,t'], { dataDir, env })
  const isStarting = () => starting.output().includes('starting the local chains')
  await waitFor('the chains are being started', isStarting, { timeoutMs: 90_000 })
  const { code, stderr, stdout } = await starting.stop('SIGINT')
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'Stopped during start.\n' })
  expect(stdout).not.toContain('"msg":"started"')
  const { stdout: processes } = spawnSync('ps', ['-ww', '-eo', 'args='], { encoding: 'utf8' })
  expect(processes.split('\n').filter((line) => line.includes(dataDir))).toEqual([])
})

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s to npm start ends the service',
  slow,
  async (signal) => {
    const dataDir = join(await freshFolder(), 'data')
    await copyInitializedDataDir(dataDir)
    const npm = spawn('npm', ['start', '--', '--chains', 'none'], {
      cwd: join(import.meta.dirname, '../..'),
      env: {
        ...process.env,
        CI: '1',
        PORTOLAN_PORT: '0',
        PORTOLAN_DATA_DIR: dataDir,
        // http-shutdown.test.ts covers the drain.
        PORTOLAN_SERVER__DRAIN_SECONDS: '0',
        PORTOLAN_DATABASE__EMBEDDED__SETTINGS: fast,
      },
      stdio: 'ignore',
    })
    const ended = once(npm, 'exit')
    const isThere = (name: string) => stat(join(dataDir, name)).then(Boolean, () => false)
    await waitFor('the service runs', () => isThere('connection.json'), { timeoutMs: 120_000 })
    npm.kill(signal)
    await ended
    const isGone = async () => !(await isThere('connection.json'))
    await waitFor('the service is gone', isGone, { timeoutMs: 60_000 })
    const processes = () => spawnSync('ps', ['-ww', '-eo', 'args='], { encoding: 'utf8' }).stdout
    await waitFor('no process is left', () => !processes().includes(dataDir), { timeoutMs: 60_000 })
  },
)

// One service for all: a start and its stop take seconds.
describe('a running service', async () => {
  const dataDir = join(await freshFolder(), 'data')
  const service = await startService(dataDir, { env: { CI: '1' } })
  let stopped: Promise<Outcome> | undefined
  /** Stops it as npm does: Ctrl-C reaches the service, and npm passes the signal on. */
  const stop = () => {
    if (!stopped) service.child.kill('SIGINT')
    stopped ??= service.stop('SIGINT')
    return stopped
  }

  test('a second service on the same folder is refused with one sentence', async () => {
    const { code, stderr } = await portolan(['start', '--chains', 'none'], { dataDir })
    expect(code).toBe(1)
    expect(stderr).toBe(`Another Portolan (pid ${service.child.pid}) is using ${dataDir}.\n`)
    expect((await ask(dataDir)).code).toBe(0)
  })

  test('a signal that npm repeats is ignored', async () => {
    expect((await stop()).code).toBe(0)
    expect(await databasePid(dataDir)).toBeUndefined()
  })

  test('a later start logs the content of the banner in its first line, without any key', async () => {
    const { stdout } = await stop()
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const { base_url, ws_url, organization_id } = service.connection
    // Steps that every start has are of level debug.
    expect(lines.find(({ level }) => level === 'info')).toEqual({
      level: 'info',
      msg: 'started',
      time: expect.any(String),
      version: expect.any(String),
      ready_seconds: expect.any(Number),
      base_url,
      ws_url,
      admin_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      docs_url: `${base_url}/docs`,
      openapi_url: `${base_url}/openapi.json`,
      database: 'embedded',
      data_dir: dataDir,
      connection_file: join(dataDir, 'connection.json'),
      organization_id,
    })
    expect(lines.slice(-2).map(({ msg }) => msg)).toEqual(['stopping', 'stopped'])
  })
})
