import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { ConnectionFile } from '../src/app/connection-file.ts'
import { cpuSeconds } from './lib/cpu.ts'
import { median, table, writeSection } from './lib/results.ts'

const run = promisify(execFile)
const here = import.meta.dirname
const rounds = Number(process.env.ROUNDS ?? 5)
const seconds = Number(process.env.SECONDS ?? 4)
const connections = 32

if (spawnSync('wrk', ['-v']).error) {
  console.log('The gateway bench needs wrk (apt-get install wrk nginx-light). Skipped.')
  process.exit()
}

type Target = { name: string; url: string; pid: number | undefined; same: boolean }
type Sample = { cpu: number; rate: number; p50: number; p99: number }

const children: ChildProcess[] = []
const dir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-bench-')))
await chmod(dir, 0o711)

/** Starts a program of this folder and waits for the port that it prints. */
async function start(file: string, ...args: string[]): Promise<{ url: string; pid: number }> {
  const child = spawn(process.execPath, [join(here, file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const [port] = (await once(child.stdout!, 'data')) as [Buffer]
  return { url: `http://127.0.0.1:${String(port).trim()}`, pid: child.pid! }
}

async function startNginx(upstream: string): Promise<Target[]> {
  if (spawnSync('nginx', ['-v']).error) return []
  const port = 20_000 + Math.floor(Math.random() * 10_000)
  const file = join(dir, 'nginx.conf')
  await writeFile(
    file,
    `daemon off; master_process off; worker_processes 1; pid ${dir}/nginx.pid; error_log stderr error;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 1000000000; client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/fastcgi; uwsgi_temp_path ${dir}/uwsgi; scgi_temp_path ${dir}/scgi;
  upstream node { server ${upstream.slice(7)}; keepalive 128; keepalive_requests 1000000000; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://node; proxy_http_version 1.1; proxy_set_header Connection ""; } } }`,
  )
  const child = spawn('nginx', ['-c', file, '-p', dir], { stdio: 'inherit' })
  children.push(child)
  await delay(1_000)
  const url = `http://127.0.0.1:${port}/`
  return [{ name: 'nginx proxy_pass', url, pid: child.pid, same: false }]
}

async function startPortolan(stub: string): Promise<{ connection: ConnectionFile; pid: number }> {
  const dataDir = join(dir, 'data')
  const upstream = (url: string) => ({ upstreams: [{ url }] })
  const networks = { mainnet: upstream(stub), ropsten: upstream(stub.replace('http', 'ws')) }
  const child = spawn(
    process.execPath,
    [...nodeArgs(), join(here, '../src/main.ts'), 'start', '--chains', 'none'],
    {
      env: {
        ...process.env,
        CI: 'true',
        PORTOLAN_PORT: '0',
        PORTOLAN_DATA_DIR: dataDir,
        PORTOLAN_LOGGING__LEVEL: 'info',
        PORTOLAN_CHAINS__C: JSON.stringify({ networks }),
        // Limits that are checked and counted, but never reached.
        PORTOLAN_LIMITS__PER_SECOND_LIMIT: '1000000',
        PORTOLAN_LIMITS__PER_HOUR_LIMIT: '1000000000',
        PORTOLAN_LIMITS__PER_DAY_LIMIT: '1000000000',
        PORTOLAN_LIMITS__PER_MONTH_LIMIT: '1000000000',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  children.push(child)
  await new Promise<void>((resolve) => {
    child.stdout!.on('data', (chunk) => String(chunk).includes('"started"') && resolve())
  })
  const text = await readFile(join(dataDir, 'connection.json'), 'utf8')
  return { connection: JSON.parse(text), pid: child.pid! }
}

const rssOf = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)
}

const nodeArgs = () => process.env.BENCH_NODE_ARGS?.split(' ') ?? []

let first = 1
async function measure({ url, pid, same }: Target, duration = seconds): Promise<Sample> {
  const before = pid === undefined ? 0 : cpuSeconds(pid)
  const { stdout } = await run(
    'wrk',
    ['-t1', `-c${connections}`, `-d${duration}s`, '-s', join(here, 'gateway-load.lua'), url],
    { env: { ...process.env, SAME: same ? '1' : '0', START: String(first) } },
  )
  const { requests, failed, p50, p99 } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  // No block twice: what was asked for before could come from the cache.
  if (!same) first += requests + 1000
  if (failed > 0) throw new Error(`${failed} of ${requests} requests failed at ${url}`)
  const cpu = pid === undefined ? Number.NaN : ((cpuSeconds(pid) - before) * 1e6) / requests
  return { cpu, rate: requests / duration, p50, p99 }
}

try {
  const stub = await start('gateway-stub.ts')
  const bare = await start('gateway-proxy.ts', stub.url)
  const { connection, pid } = await startPortolan(stub.url)
  const gateway = (network: string) =>
    `${connection.base_url}/c/${network}/v1/${connection.member?.api_key}`
  const targets: Target[] = [
    { name: 'stub node, direct', url: stub.url, pid: stub.pid, same: false },
    ...(await startNginx(stub.url)),
    { name: 'bare node:http + undici', url: bare.url, pid: bare.pid, same: false },
    { name: 'Portolan, node over HTTP', url: gateway('mainnet'), pid, same: false },
    { name: 'Portolan, node over WebSocket', url: gateway('ropsten'), pid, same: false },
    { name: 'Portolan, cache hit', url: gateway('mainnet'), pid, same: true },
  ].filter(({ name }) => new RegExp(process.env.ONLY ?? '').test(name))

  const samples = new Map<string, Sample[]>(targets.map(({ name }) => [name, []]))
  for (const target of targets) await measure(target, 6)
  const memory = [await rssOf(pid)]
  let answered = 0
  for (let round = 0; round < rounds; round++) {
    for (const target of targets) {
      const sample = await measure(target)
      samples.get(target.name)?.push(sample)
      if (target.pid === pid) answered += sample.rate * seconds
    }
    memory.push(await rssOf(pid))
  }

  const of = (name: string, field: keyof Sample) =>
    median((samples.get(name) ?? []).map((sample) => sample[field]))
  const base = of('bare node:http + undici', 'cpu')
  const shown = (value: number, digits: number) =>
    Number.isNaN(value) ? '' : value.toFixed(digits)
  await writeSection(
    'Gateway overhead',
    'node bench/gateway.ts',
    `One eth_getBlockByNumber per request, ${connections} connections, wrk with one thread, ${seconds} s each, median of ${rounds} interleaved rounds; CPU of the gateway process alone. Portolan checks the key, four rate windows and the parameters, counts and measures every call, and keeps what it fetched; the bare proxy does nothing but pass on. Pass-through never asks for the same block twice, cache hit always does.\n\n${table(
      ['Gateway', 'CPU µs per request', 'of the bare proxy', 'requests/s', 'p50 ms', 'p99 ms'],
      targets.map(({ name }) => [
        name,
        shown(of(name, 'cpu'), 1),
        shown(of(name, 'cpu') / base, 2),
        shown(of(name, 'rate'), 0),
        shown(of(name, 'p50'), 2),
        shown(of(name, 'p99'), 2),
      ]),
    )}\n\nMemory of Portolan before the rounds and after each of them, over ${Math.round(answered).toLocaleString('en')} requests: ${memory.join(', ')} MiB, of which the cache may take 64 per network.`,
  )
} finally {
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
  await rm(dir, { recursive: true, force: true })
}
