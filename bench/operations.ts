import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ConnectionFile } from '../src/app/connection-file.ts'
import { connectionOf, layoutOf } from '../src/storage/embedded/layout.ts'
import { cpuSeconds, pidsOf } from './lib/cpu.ts'
import { median, table, writeSection } from './lib/results.ts'

const run = promisify(execFile)
const here = import.meta.dirname
const requests = 10_000
const rounds = 5

type Target = { name: string; url: string; pid: number }
type Sample = { cpu: number; database: number; p50: number; p99: number }

const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-bench-')))
await chmod(dataDir, 0o711)
const service = spawn(
  process.execPath,
  [join(here, '../bin/portolan.js'), 'start', '--chains', 'none'],
  {
    env: {
      ...process.env,
      CI: 'true',
      PORTOLAN_PORT: '0',
      PORTOLAN_SERVER__WORKERS: '1',
      PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
      PORTOLAN_DATA_DIR: dataDir,
      PORTOLAN_LOGGING__LEVEL: 'info',
      // Limits that are checked and counted, but never reached.
      PORTOLAN_LIMITS__PER_SECOND_LIMIT: '1000000',
      PORTOLAN_LIMITS__PER_HOUR_LIMIT: '1000000000',
      PORTOLAN_LIMITS__PER_DAY_LIMIT: '1000000000',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  },
)
await new Promise<void>((resolve, reject) => {
  service.once('exit', () => reject(new Error('Portolan did not start')))
  service.stdout!.on('data', (chunk) => String(chunk).includes('"started"') && resolve())
})
const connection: ConnectionFile = JSON.parse(
  await readFile(join(dataDir, 'connection.json'), 'utf8'),
)
const { host, user, database, port } = connectionOf(layoutOf(dataDir))
const bare = spawn(
  process.execPath,
  [join(here, 'operations-server.ts'), host, user, database, String(port)],
  { stdio: ['ignore', 'pipe', 'inherit'] },
)
const [barePort] = (await once(bare.stdout!, 'data')) as [Buffer]

const targets: Target[] = [
  { name: 'Portolan', url: connection.base_url, pid: service.pid! },
  { name: 'bare handler', url: `http://127.0.0.1:${String(barePort).trim()}`, pid: bare.pid! },
]

const databaseCpu = () =>
  pidsOf('postgres').reduce((sum, pid) => {
    try {
      return sum + cpuSeconds(pid)
    } catch {
      return sum
    }
  }, 0)

async function measure({ url, pid }: Target): Promise<Sample> {
  const { api_key, api_secret } = connection.admin!
  const before = [cpuSeconds(pid), databaseCpu()] as const
  const { stdout } = await run(process.execPath, [
    join(here, 'operations-load.ts'),
    url,
    api_key,
    api_secret,
    String(requests),
  ])
  const { failed, p50, p99 } = JSON.parse(stdout)
  if (failed > 0) throw new Error(`${failed} requests failed at ${url}`)
  const perRequest = (seconds: number) => (seconds * 1e6) / requests
  return {
    cpu: perRequest(cpuSeconds(pid) - before[0]),
    database: perRequest(databaseCpu() - before[1]),
    p50,
    p99,
  }
}

const samples = new Map<string, Sample[]>(targets.map(({ name }) => [name, []]))
for (const target of targets) await measure(target)
for (let round = 0; round < rounds; round++)
  for (const target of targets) samples.get(target.name)?.push(await measure(target))

const stop = async (child: ChildProcess) => {
  child.kill('SIGTERM')
  if (child.exitCode === null) await once(child, 'exit')
}
await stop(bare)
await stop(service)
await rm(dataDir, { recursive: true, force: true })

const of = (name: string, field: keyof Sample) =>
  median((samples.get(name) ?? []).map((sample) => sample[field]))
const base = of('bare handler', 'cpu')
await writeSection(
  'Operation overhead',
  'node bench/operations.ts',
  `GetOrganizationByDomain on the embedded database, ${requests.toLocaleString('en')} requests over 32 connections, median of ${rounds} interleaved rounds. The bare handler is the same handler on the same database behind node:http, without authentication, limits and checks. Portolan's figure includes one nonce per request that no crash lets through twice.\n\n${table(
    ['Server', 'CPU µs per request', 'of the bare handler', 'database CPU µs', 'p50 ms', 'p99 ms'],
    targets.map(({ name }) => [
      name,
      of(name, 'cpu').toFixed(0),
      (of(name, 'cpu') / base).toFixed(2),
      of(name, 'database').toFixed(0),
      of(name, 'p50').toFixed(1),
      of(name, 'p99').toFixed(1),
    ]),
  )}`,
)
