import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '../client/src/client.ts'
import type { ConnectionFile } from '../src/app/connection-file.ts'
import { cpuSeconds } from './lib/cpu.ts'
import { median, table, writeSection } from './lib/results.ts'

// Start-up and memory with many configured networks that nothing uses, and the CPU time of ten tracked networks
// compared with one, in one process. `networks.ts 3 10` takes rounds of the start and seconds of each CPU figure; 0 leaves
// that part out.
const rounds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 60)

const firstId = 900_000
const main = join(import.meta.dirname, '../bin/portolan.js')

type Service = {
  pid: number
  readyMs: number
  child: ChildProcess
  stop(): Promise<void>
}

async function startNode(): Promise<{ child: ChildProcess; url: string }> {
  const program = join(import.meta.dirname, 'networks-node.ts')
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: child.stdout! }))
    return { child, url: `http://127.0.0.1:${line}` }
  throw new Error('The node did not start.')
}

const configOf = (count: number, url: string): string =>
  JSON.stringify({
    chains: Object.fromEntries(
      Array.from({ length: count }, (_, index) => [
        `chain-${index}`,
        {
          variant: 'C',
          networks: { mainnet: { upstreams: [{ url: `${url}/${firstId + index}` }] } },
        },
      ]),
    ),
  })

async function startService(dataDir: string, config: string): Promise<Service> {
  const file = join(dataDir, 'portolan.yaml')
  await writeFile(file, config)
  const begun = performance.now()
  const child = spawn(process.execPath, [main, 'start', '--config', file], {
    env: {
      ...process.env,
      CI: 'true',
      PORTOLAN_PORT: '0',
      PORTOLAN_SERVER__WORKERS: '1',
      PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
      PORTOLAN_DATA_DIR: dataDir,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout! })
  for await (const line of lines)
    if (line.includes('"msg":"started"')) {
      const readyMs = performance.now() - begun
      child.stdout!.resume()
      const stop = async () => {
        child.kill('SIGTERM')
        if (child.exitCode === null) await once(child, 'exit')
      }
      return { pid: child.pid!, readyMs, child, stop }
    }
  throw new Error('The service did not start.')
}

const memoryMib = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}

const countsOf = async (url: string): Promise<Record<string, number>> =>
  (await (await fetch(`${url}/counts`)).json()) as Record<string, number>

async function measureStart(url: string): Promise<void> {
  const rows: unknown[][] = []
  let base: number | undefined
  for (const count of [1, 10, 100, 200]) {
    const times: number[] = []
    const memory: number[] = []
    const dataDir = await mkdtemp(join(tmpdir(), 'portolan-bench-'))
    await chmod(dataDir, 0o711)
    const config = configOf(count, url)
    // The first start makes the database.
    await (await startService(dataDir, config)).stop()
    for (let round = 0; round < rounds; round++) {
      const service = await startService(dataDir, config)
      times.push(service.readyMs)
      await delay(3_000)
      memory.push(await memoryMib(service.pid))
      await service.stop()
    }
    await rm(dataDir, { recursive: true, force: true })
    const mib = median(memory)
    base ??= mib
    const each = count === 1 ? '' : `${((1024 * (mib - base)) / (count - 1)).toFixed(0)} KiB`
    rows.push([count, `${Math.round(median(times))} ms`, `${mib.toFixed(0)} MiB`, each])
  }
  const calls = Object.values(await countsOf(url)).reduce((sum, one) => sum + one, 0)
  await writeSection(
    'Networks that are configured and not used',
    'node bench/networks.ts',
    `${table(['Networks', `start-up, median of ${rounds}`, 'resident memory 3 s later', 'per network above one'], rows)}\n\nCalls to the nodes of all these networks: ${calls}. Goals: 200 networks in 3000 ms, 1 MiB each, no call.`,
  )
}

async function measureCpu(url: string): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'portolan-bench-'))
  await chmod(dataDir, 0o711)
  const service = await startService(dataDir, configOf(10, url))
  const connection: ConnectionFile = JSON.parse(
    await readFile(join(dataDir, 'connection.json'), 'utf8'),
  )
  const client = createClient({ base_url: connection.base_url, ...connection.member! })
  const track = async (index: number) => {
    const chain = client.chain(`chain-${index}`) as unknown as {
      RegisterWallet(request: object): Promise<object>
    }
    await chain.RegisterWallet({ name: 'bench', address: `0x${'ab'.repeat(20)}` })
  }
  const measure = async () => {
    await delay(5_000)
    const before = cpuSeconds(service.pid)
    const calls = await countsOf(url)
    await delay(seconds * 1_000)
    const now = await countsOf(url)
    const asked = Object.keys(now).reduce((sum, id) => sum + now[id]! - (calls[id] ?? 0), 0)
    return { share: (cpuSeconds(service.pid) - before) / seconds, calls: asked / seconds }
  }
  const idle = await measure()
  await track(0)
  const one = await measure()
  for (let index = 1; index < 10; index++) await track(index)
  const ten = await measure()
  await service.stop()
  await rm(dataDir, { recursive: true, force: true })
  const row = (name: string, { share, calls }: typeof one) => [
    name,
    `${(share * 100).toFixed(1)} %`,
    calls.toFixed(1),
  ]
  const added = (ten.share - idle.share) / (one.share - idle.share)
  await writeSection(
    'Networks that are tracked at the head',
    'node bench/networks.ts',
    `${table(
      ['Tracked networks', 'CPU of one core', 'calls to nodes per second'],
      [row('0', idle), row('1', one), row('10', ten)],
    )}\n\nEmpty blocks every second, ${seconds} s each, one process. Ten networks take ${added.toFixed(1)} times the CPU of one, above that of none.`,
  )
}

const node = await startNode()
try {
  if (rounds > 0) await measureStart(node.url)
  if (seconds > 0) await measureCpu(node.url)
} finally {
  node.child.kill()
}
