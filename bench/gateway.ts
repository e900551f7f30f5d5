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
const seconds = Number(process.env.SECONDS ?? 2)
const connections = 32

const memoryRequests = Number(process.env.MEMORY_REQUESTS ?? 1_000_000)
const hasWrk = !spawnSync('wrk', ['-v']).error

type Kind = 'call' | 'block'
type Target = { name: string; url: string; pid: number | undefined; kind: Kind; same: boolean }
const kinds: readonly Kind[] = ['call', 'block']

type Sample = { cpu: number; rate: number; p50: number; p99: number }
type Counted = { requests: number; failed: number; p50: number; p99: number; late: number }

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
/** Puts load on an address; no question twice unless it is to be the same: it could come from the cache. */
async function load(
  { url, kind, same }: Pick<Target, 'url' | 'kind' | 'same'>,
  { rate = 0, ...bound }: { seconds?: number; requests?: number; rate?: number },
): Promise<Counted> {
  const isForWrk = hasWrk && rate === 0 && bound.requests === undefined
  const { stdout } = isForWrk
    ? await run(
        'wrk',
        [
          '-t1',
          `-c${connections}`,
          `-d${bound.seconds}s`,
          '-s',
          join(here, 'gateway-load.lua'),
          url,
        ],
        { env: { ...process.env, KIND: kind, SAME: same ? '1' : '0', START: String(first) } },
      )
    : await run(process.execPath, [
        join(here, 'gateway-load.ts'),
        JSON.stringify({ url, connections, rate, kind, same, start: same ? 1 : first, ...bound }),
      ])
  const counted: Counted = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  if (!same) first += counted.requests + 1000
  if (counted.failed > 0)
    throw new Error(`${counted.failed} of ${counted.requests} requests failed at ${url}`)
  return counted
}

async function measure(target: Target, duration = seconds): Promise<Sample> {
  const { pid } = target
  const before = pid === undefined ? 0 : cpuSeconds(pid)
  const { requests, p50, p99 } = await load(target, { seconds: duration })
  const cpu = pid === undefined ? Number.NaN : ((cpuSeconds(pid) - before) * 1e6) / requests
  return { cpu, rate: requests / duration, p50, p99 }
}

/** What the gateway adds to the time of a call when it has half as much to do as it could. */
async function measureLatency(direct: Target, through: Target, rate: number): Promise<string> {
  const added: { p50: number; p99: number; late: number; own: number }[] = []
  for (let round = 0; round < rounds; round++) {
    const own = await load(direct, { seconds, rate })
    const other = await load(through, { seconds, rate })
    added.push({
      p50: other.p50 - own.p50,
      p99: other.p99 - own.p99,
      late: Math.max(own.late, other.late),
      own: own.p99,
    })
  }
  const of = (field: keyof (typeof added)[number]) =>
    median(added.map((one) => one[field])).toFixed(2)
  return `Added latency at half load (${Math.round(rate)} requests/s, ${connections} connections), pass-through over direct, median of ${rounds} interleaved rounds: p50 ${of('p50')} ms, p99 ${of('p99')} ms (goals 0.5 and 3). Direct, the p99 is ${of('own')} ms; the load generator itself is up to ${of('late')} ms late (p99), because it shares the two cores.`
}

/** Whether many requests leave the memory of a process as it was. */
async function measureMemory(targets: readonly Target[], pid: number): Promise<string> {
  const part = Math.ceil(memoryRequests / 20 / targets.length)
  // The caches fill up first, and the heap finds its size.
  const warmUp = Math.max(4, Math.ceil(160_000 / part / targets.length))
  const samples: number[] = []
  for (let round = 0; round < warmUp + 20; round++) {
    for (const target of targets) await load(target, { requests: part })
    if (round >= warmUp) samples.push(await rssOf(pid))
  }
  const middle = median(samples)
  const [least, most] = [Math.min(...samples), Math.max(...samples)]
  const percent = (value: number) => `${(((value - middle) / middle) * 100).toFixed(1)} %`
  const sent = (part * targets.length * 20).toLocaleString('en')
  return `Memory over ${sent} requests after the warm-up, two thirds of them passed through and one third from the cache, looked at 20 times: median ${middle} MiB, ${least} (${percent(least)}) to ${most} (+${percent(most)}); goal ± 10 %. The caches may take 64 MiB per network. In order: ${samples.join(', ')}.`
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
    ...each('bare node:http + undici', bare.url, bare.pid),
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

  const samples = new Map<Target, Sample[]>(targets.map((target) => [target, []]))
  for (const target of targets) await measure(target, Math.min(6, seconds + 1))
  for (let round = 0; round < rounds; round++) {
    for (const target of targets) {
      const sample = await measure(target)
      samples.get(target)?.push(sample)
    }
  }

  const of = (target: Target | undefined, field: keyof Sample) =>
    median((target && samples.get(target))?.map((sample) => sample[field]) ?? [])
  const named = (name: string, kind: Kind) =>
    targets.find((target) => target.name === name && target.kind === kind)
  const [direct, through] = [
    named('stub node, direct', 'call'),
    named('Portolan, node over HTTP', 'call'),
  ]
  const latency =
    direct && through ? await measureLatency(direct, through, of(through, 'rate') / 2) : ''
  const memory =
    memoryRequests > 0
      ? await measureMemory(
          targets.filter((target) => target.pid === pid && target.kind === 'block'),
          pid,
        )
      : ''
  const baseOf = ({ kind }: Target) => of(named('bare node:http + undici', kind), 'cpu')
  const shown = (value: number, digits: number) =>
    Number.isNaN(value) ? '' : value.toFixed(digits)
  await writeSection(
    'Gateway overhead',
    'node bench/gateway.ts',
    `One request at a time over each of ${connections} connections, ${hasWrk ? 'wrk with one thread' : 'a load generator of our own'}, ${seconds} s each, median of ${rounds} interleaved rounds; CPU of the gateway process alone. A call is an eth_call on the latest block with an answer of 32 bytes; a block is an eth_getBlockByNumber with an answer of 1.9 KB. Nothing is asked for twice, except for the cache hit, which always asks for the same block. Portolan checks the key, four rate windows and the parameters, counts and measures every call and keeps what it fetched; of a block it also compares the hash with the header. The bare proxy does nothing but pass on.\n\n${table(
      [
        'Gateway',
        'Asked for',
        'CPU µs per request',
        'of the bare proxy',
        'requests/s',
        'p50 ms',
        'p99 ms',
      ],
      targets.map((target) => [
        target.name,
        target.kind,
        shown(of(target, 'cpu'), 1),
        shown(of(target, 'cpu') / baseOf(target), 2),
        shown(of(target, 'rate'), 0),
        shown(of(target, 'p50'), 2),
        shown(of(target, 'p99'), 2),
      ]),
    )}\n\n${[latency, memory].filter(Boolean).join('\n\n')}`,
  )
} finally {
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
  await rm(dir, { recursive: true, force: true })
}
