import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ConnectionFile } from '../src/app/connection-file.ts'
import { cpuSeconds } from './lib/cpu.ts'
import { median, table, writeSection } from './lib/results.ts'

// CPU time per operation without telemetry, at 1 % and with everything traced. The rounds take turns, so that a slow
// moment of the machine is not the cost of one of them.

const run = promisify(execFile)
const here = import.meta.dirname
const requests = 10_000
const rounds = 7

const collector = createServer((request, response) => {
  request.resume().on('end', () => response.end('{}'))
}).listen(0, '127.0.0.1')
await new Promise((resolve) => collector.once('listening', resolve))
const otlp = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`

type Service = {
  name: string
  child: ChildProcess
  dataDir: string
  connection: ConnectionFile
  cpu: number[]
}

const start = async (name: string, env: Record<string, string>): Promise<Service> => {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-bench-')))
  await chmod(dataDir, 0o711)
  const main = join(here, '../bin/portolan.js')
  const child = spawn(process.execPath, [main, 'start', '--chains', 'none'], {
    env: {
      ...process.env,
      CI: 'true',
      PORTOLAN_PORT: '0',
      PORTOLAN_SERVER__WORKERS: '1',
      PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
      PORTOLAN_DATA_DIR: dataDir,
      PORTOLAN_LIMITS__PER_SECOND_LIMIT: '1000000',
      PORTOLAN_LIMITS__PER_HOUR_LIMIT: '1000000000',
      PORTOLAN_LIMITS__PER_DAY_LIMIT: '1000000000',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('Portolan did not start')))
    child.stdout!.on('data', (chunk) => String(chunk).includes('"started"') && resolve())
  })
  const connection = JSON.parse(await readFile(join(dataDir, 'connection.json'), 'utf8'))
  return { name, child, dataDir, connection, cpu: [] }
}

const traced = (share: string) => ({
  PORTOLAN_TELEMETRY__OTLP_URL: otlp,
  PORTOLAN_TELEMETRY__TRACE_SHARE: share,
})
const services = [
  await start('off', {}),
  await start('1 %', traced('0.01')),
  await start('100 %', traced('1')),
]
for (let round = -1; round < rounds; round++)
  for (const { connection, child, cpu } of services) {
    const before = cpuSeconds(child.pid!)
    const { api_key, api_secret } = connection.admin!
    const load = join(here, 'operations-load.ts')
    await run(process.execPath, [load, connection.base_url, api_key, api_secret, `${requests}`])
    // The first round warms up.
    if (round >= 0) cpu.push(((cpuSeconds(child.pid!) - before) / requests) * 1e6)
  }

const off = median(services[0]!.cpu)
await writeSection(
  'Tracing',
  'npm run bench -- tracing',
  `CPU time of the service per operation (${requests} operations, median of ${rounds} rounds that take turns), by the share that is traced.

${table(
  ['Traced', 'CPU per operation', 'More than without'],
  services.map(({ name, cpu }) => {
    const more = (median(cpu) / off - 1) * 100
    return [name, `${median(cpu).toFixed(0)} µs`, `${more.toFixed(1)} %`]
  }),
)}`,
)
for (const { child, dataDir } of services) {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
  await rm(dataDir, { recursive: true, force: true })
}
collector.close()
