import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import type { ConnectionFile } from '../src/app/connection-file.ts'
import { cpuSeconds } from './lib/cpu.ts'
import { median, table, writeSection } from './lib/results.ts'

const run = promisify(execFile)
const here = import.meta.dirname
const rounds = Number(process.env.ROUNDS ?? 5)
const seconds = Number(process.env.SECONDS ?? 2)
const connections = 32
// A service runs for days: what its compiler does in the first seconds is not what a request costs.
const warmUpSeconds = Number(process.env.WARM_UP ?? 5)
const memoryRequests = Number(process.env.MEMORY_REQUESTS ?? 1_000_000)
const hasWrk = !spawnSync('wrk', ['-v']).error

type Kind = 'call' | 'block'
type Target = { name: string; url: string; pid: number | undefined; kind: Kind; same: boolean }
const kinds: readonly Kind[] = ['call', 'block']
const bareName = 'bare node:http + undici'

type Sample = { cpu: number; rate: number; p50: number; p99: number }
type Counted = { requests: number; failed: number; refused?: number; p50: number; p99: number }

const parts = ['overhead', 'latency', 'memory'] as const
const { only } = parseArgs({ options: { only: { type: 'string' } } }).values
if (only !== undefined && !parts.some((part) => part === only))
  throw new Error(`--only takes one of ${parts.join(', ')}`)
const isWanted = (part: (typeof parts)[number]) => only === undefined || only === part

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
  return kinds.map((kind) => ({ name: 'nginx proxy_pass', url, pid: child.pid, kind, same: false }))
}

async function startPortolan(stub: string): Promise<{ connection: ConnectionFile; pid: number }> {
  const dataDir = join(dir, 'data')
  const upstream = (url: string) => ({ upstreams: [{ url }] })
  const networks = { mainnet: upstream(stub), ropsten: upstream(stub.replace('http', 'ws')) }
  const child = spawn(
    process.execPath,
    [...nodeArgs(), join(here, '../bin/portolan.js'), 'start', '--chains', 'none'],
    {
      env: {
        ...process.env,
        CI: 'true',
        PORTOLAN_PORT: '0',
        PORTOLAN_SERVER__WORKERS: '1',
        PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
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
/**
 * Puts load on an address, as much as it takes or at a rate; no question twice unless it is to be the same:
 * it could come from the cache.
 */
async function load(
  { url, kind, same }: Pick<Target, 'url' | 'kind' | 'same'>,
  duration: number,
  rate = 0,
): Promise<Counted> {
  // Each connection pauses between an answer and the next question, for about a millisecond less than its turn.
  const pauseMs = rate === 0 ? 0 : Math.max(0, (1_000 * connections) / rate - 1)
  const settings = { KIND: kind, SAME: same ? '1' : '0', START: String(first), PAUSE: `${pauseMs}` }
  const script = join(here, 'gateway-load.lua')
  const { stdout } = hasWrk
    ? await run(
        'wrk',
        ['-t1', `-c${connections}`, `-d${duration}s`, '--timeout', '10s', '-s', script, url],
        {
          env: { ...process.env, ...settings },
        },
      )
    : await run(process.execPath, [
        join(here, 'gateway-load.ts'),
        JSON.stringify({ url, connections, rate, kind, same, start: first, seconds: duration }),
      ])
  const counted: Counted = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  if (!same) first += counted.requests + 1000
  const { requests, failed, refused = 0 } = counted
  if (failed > 0)
    throw new Error(`${failed} of ${requests} requests failed at ${url}, ${refused} with a status`)
  return counted
}

async function measure(target: Target, duration = seconds): Promise<Sample> {
  const { pid } = target
  const before = pid === undefined ? 0 : cpuSeconds(pid)
  const { requests, p50, p99 } = await load(target, duration)
  const cpu = pid === undefined ? Number.NaN : ((cpuSeconds(pid) - before) * 1e6) / requests
  return { cpu, rate: requests / duration, p50, p99 }
}

/** What each way costs, all of them in turn. */
async function measureOverhead(targets: readonly Target[]): Promise<string> {
  const samples = new Map<Target, Sample[]>(targets.map((target) => [target, []]))
  for (const target of targets) await measure(target, warmUpSeconds)
  for (let round = 0; round < rounds; round++)
    for (const target of targets) samples.get(target)?.push(await measure(target))

  const allOf = (target: Target, field: keyof Sample) =>
    samples.get(target)?.map((sample) => sample[field]) ?? []
  const of = (target: Target, field: keyof Sample) => median(allOf(target, field))
  // Within each round, because the machine is not equally busy in all of them.
  const ratioOf = (target: Target) => {
    const bare = targets.find(({ name, kind }) => name === bareName && kind === target.kind)
    const costs = bare ? allOf(bare, 'cpu') : []
    return median(allOf(target, 'cpu').map((cost, round) => cost / (costs[round] ?? Number.NaN)))
  }
  const shown = (value: number, digits: number) =>
    Number.isNaN(value) ? '' : value.toFixed(digits)
  const rows = targets.map((target) => [
    target.name,
    target.kind,
    shown(of(target, 'cpu'), 1),
    shown(ratioOf(target), 2),
    shown(of(target, 'rate'), 0),
    shown(of(target, 'p50'), 2),
    shown(of(target, 'p99'), 2),
  ])
  const columns = ['Gateway', 'Asked for', 'CPU µs per request', 'of the bare proxy']
  return `One request at a time over each of ${connections} connections, ${hasWrk ? 'wrk with one thread' : 'a load generator of our own'}, ${seconds} s each after ${warmUpSeconds} s of warm-up each, median of ${rounds} interleaved rounds; CPU of the gateway process alone, the ratio within each round. A call is an eth_call on the latest block with an answer of 32 bytes; a block is an eth_getBlockByNumber with an answer of 1.4 KB. Nothing is asked for twice, except for the cache hit, which always asks for the same block. Portolan checks the key, four rate windows and the parameters, counts and measures every call and keeps what it fetched; of a block it also compares the hash with the header. The bare proxy does nothing but pass on.\n\n${table([...columns, 'requests/s', 'p50 ms', 'p99 ms'], rows)}`
}

/**
 * What the gateway adds to the time of a call when it has half as much to do as it could. The load comes in
 * turns over both ways, so that what the generator and the machine add is in both and falls out.
 */
async function measureLatency(direct: Target, through: Target): Promise<string> {
  for (const target of [direct, through]) await load(target, warmUpSeconds)
  const most = (await load(through, seconds)).requests / seconds
  const added: { p50: number; p99: number; own50: number; own99: number; rate: number }[] = []
  for (let round = 0; round < 2 * rounds; round++) {
    const own = await load(direct, seconds, most / 2)
    const other = await load(through, seconds, most / 2)
    added.push({
      p50: other.p50 - own.p50,
      p99: other.p99 - own.p99,
      own50: own.p50,
      own99: own.p99,
      rate: other.requests / seconds,
    })
  }
  const of = (field: keyof (typeof added)[number], digits = 2) =>
    median(added.map((one) => one[field])).toFixed(digits)
  const best = Math.min(...added.map(({ p99 }) => p99)).toFixed(2)
  return `Added latency at half load (${of('rate', 0)} of ${Math.round(most)} requests/s, ${connections} connections, ${hasWrk ? 'wrk with pauses of random length' : 'a load generator of our own'}), pass-through over direct, median of ${2 * rounds} interleaved rounds of ${seconds} s: p50 ${of('p50')} ms, p99 ${of('p99')} ms, in the best round ${best} ms (goals 0.5 and 3). Direct, p50 is ${of('own50')} ms and p99 ${of('own99')} ms: generator, node and gateway share the two cores.`
}

/** Whether many requests leave the memory of a process as it was. */
async function measureMemory(targets: readonly Target[], pid: number): Promise<string> {
  const samples: number[] = []
  let sent = 0
  let hits = 0
  const turn = async () => {
    for (const target of targets) {
      const { requests } = await load(target, seconds)
      sent += requests
      if (target.same) hits += requests
    }
  }
  // The caches fill up first, and the heap finds its size.
  while (sent < memoryRequests / 4) await turn()
  sent = hits = 0
  while (sent < memoryRequests) {
    await turn()
    samples.push(await rssOf(pid))
  }
  const middle = median(samples)
  const [least, most] = [Math.min(...samples), Math.max(...samples)]
  const percent = (value: number) => `${(((value - middle) / middle) * 100).toFixed(1)} %`
  const share = Math.round((hits / sent) * 100)
  return `${sent.toLocaleString('en')} requests after a warm-up of a quarter as many, calls and blocks over HTTP and WebSocket, ${share} % of them from the cache; looked at ${samples.length} times: median ${middle} MiB, ${least} (${percent(least)}) to ${most} (+${percent(most)}); goal ± 10 %. The caches may take 64 MiB per network, and there are two. In order: ${samples.join(', ')}.`
}

try {
  const stub = await start('gateway-stub.ts')
  const bare = await start('gateway-proxy.ts', stub.url)
  const { connection, pid } = await startPortolan(stub.url)
  const gateway = (network: string) =>
    `${connection.base_url}/c/${network}/v1/${connection.member?.api_key}`
  const each = (name: string, url: string, pid: number): Target[] =>
    kinds.map((kind) => ({ name, url, pid, kind, same: false }))
  const targets: Target[] = [
    ...each('stub node, direct', stub.url, stub.pid),
    ...(await startNginx(stub.url)),
    ...each(bareName, bare.url, bare.pid),
    ...each('Portolan, node over HTTP', gateway('mainnet'), pid),
    ...each('Portolan, node over WebSocket', gateway('ropsten'), pid),
    {
      name: 'Portolan, cache hit',
      url: gateway('mainnet'),
      pid,
      kind: 'block' as const,
      same: true,
    },
  ].filter(({ name, kind }) => new RegExp(process.env.ONLY ?? '').test(`${name} ${kind}`))

  const named = (name: string, kind: Kind) =>
    targets.find((target) => target.name === name && target.kind === kind)
  const direct = named('stub node, direct', 'call')
  const through = named('Portolan, node over HTTP', 'call')
  const overhead = isWanted('overhead') ? [await measureOverhead(targets)] : []
  if (isWanted('latency') && direct && through) overhead.push(await measureLatency(direct, through))
  if (overhead.length > 0)
    await writeSection('Gateway overhead', 'node bench/gateway.ts', overhead.join('\n\n'))
  if (isWanted('memory')) {
    const text = await measureMemory(
      targets.filter((target) => target.pid === pid),
      pid,
    )
    await writeSection('Gateway memory', 'node bench/gateway.ts --only memory', text)
  }
} finally {
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
  await rm(dir, { recursive: true, force: true })
}
