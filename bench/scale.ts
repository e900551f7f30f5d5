import { type ChildProcess, execFile, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { createClient } from '../client/src/client.ts'
import { startAnvil } from '../devnet/anvil/anvil.ts'
import { startNode } from './fanout-node.ts'
import { cpuSeconds } from './lib/cpu.ts'
import { median, table, writeSection } from './lib/results.ts'

// The same service with one process and with several, both running all the time and loaded in turn.
const run = promisify(execFile)
const here = import.meta.dirname
const rounds = Number(process.env.ROUNDS ?? 5)
const seconds = Number(process.env.SECONDS ?? 3)
const warmUpSeconds = Number(process.env.WARM_UP ?? 5)
const usualConnections = 64
const clients = Number(process.env.CLIENTS ?? 10_000)
const counts = (process.env.WORKERS ?? '1,2').split(',').map(Number)
const hasWrk = !spawnSync('wrk', ['-v']).error
const parts = ['gateway', 'tracking', 'fan-out'] as const
const { only } = parseArgs({ options: { only: { type: 'string' } } }).values
const isWanted = (part: (typeof parts)[number]) => only === undefined || only === part

const children: ChildProcess[] = []
const dir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-scale-')))
await chmod(dir, 0o711)

type Service = {
  workers: number
  url(network: string): string
  wsUrl(network: string): string
  /** Of all its processes, without the database. */
  cpu(): Promise<number>
  /** Mines on the network of wallets, which each service has its own of. */
  mine(blocks: number): Promise<unknown>
  /** Tracks that network from now on. */
  track(): Promise<void>
  lag(): Promise<number>
  stop(): Promise<unknown>
}

async function startStub(): Promise<string> {
  const child = spawn(process.execPath, [join(here, 'gateway-stub.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const [port] = (await once(child.stdout!, 'data')) as [Buffer]
  return `http://127.0.0.1:${String(port).trim()}`
}

async function startPortolan(
  workers: number,
  others: Readonly<Record<string, string>>,
): Promise<Service> {
  const dataDir = join(dir, `data-${workers}`)
  const anvil = await startAnvil({})
  const nodes = { mainnet: anvil.url, ...others }
  const networks = Object.fromEntries(
    Object.entries(nodes).map(([name, url]) => [name, { upstreams: [{ url }] }]),
  )
  const most = '1000000000'
  const child = spawn(
    process.execPath,
    [join(here, '../src/main.ts'), 'start', '--chains', 'none'],
    {
      env: {
        ...process.env,
        CI: 'true',
        PORTOLAN_PORT: '0',
        PORTOLAN_SERVER__WORKERS: `${workers}`,
        PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
        PORTOLAN_DATA_DIR: dataDir,
        PORTOLAN_CHAINS__C: JSON.stringify({ networks, default_network: 'mainnet' }),
        PORTOLAN_SERVER__CONNECTIONS_PER_ADDRESS: '100000',
        // Divided among the workers, and the system does not divide clients evenly.
        PORTOLAN_SERVER__CONNECTIONS_LIMIT: '100000',
        PORTOLAN_GATEWAY__CONNECTIONS_PER_KEY: '100000',
        PORTOLAN_GATEWAY__SUBSCRIPTIONS_PER_KEY: '100000',
        // Limits that are checked and counted, but never reached.
        PORTOLAN_LIMITS__PER_SECOND_LIMIT: '1000000',
        PORTOLAN_LIMITS__PER_HOUR_LIMIT: most,
        PORTOLAN_LIMITS__PER_DAY_LIMIT: most,
        PORTOLAN_LIMITS__PER_MONTH_LIMIT: most,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  children.push(child)
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('Portolan did not start')))
    child.stdout!.on('data', (chunk) => String(chunk).includes('"started"') && resolve())
  })
  const text = await readFile(join(dataDir, 'connection.json'), 'utf8')
  const { base_url, ws_url, admin_url, member } = JSON.parse(text)
  const status = async () => await (await fetch(`${admin_url}/status`)).json()
  return {
    workers,
    url: (network) => `${base_url}/c/${network}/v1/${member.api_key}`,
    wsUrl: (network) => `${ws_url}/c/${network}/v1/ws/${member.api_key}`,
    cpu: async () => {
      const { processes = [] } = (await status()) as { processes?: { pid: number }[] }
      return [child.pid!, ...processes.map(({ pid }) => pid)].reduce(
        (sum, pid) => sum + cpuSeconds(pid),
        0,
      )
    },
    mine: (blocks) => anvil.call('anvil_mine', [`0x${blocks.toString(16)}`]),
    track: async () => {
      const client = createClient({ base_url, ...member })
      const chain = client.chain('c') as unknown as {
        RegisterWallet(request: object): Promise<object>
      }
      await chain.RegisterWallet({ name: 'bench', address: `0x${'ab'.repeat(20)}` })
    },
    lag: async () => {
      const { block_number, head } = (await status()).chains.c.tracking ?? {}
      return block_number === null || head === null ? Number.POSITIVE_INFINITY : head - block_number
    },
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
      await anvil.stop()
    },
  }
}

type Counted = { requests: number; failed: number; p50: number; p99: number }
let first = 1

async function load(
  service: Service,
  { kind, same }: { kind: 'call' | 'block'; same: boolean },
  duration: number,
  { rate = 0, connections = usualConnections } = {},
): Promise<Counted> {
  const url = service.url('ropsten')
  const pauseMs = rate === 0 ? 0 : Math.max(0, (1_000 * connections) / rate - 1)
  const settings = { KIND: kind, SAME: same ? '1' : '0', START: `${first}`, PAUSE: `${pauseMs}` }
  const script = join(here, 'gateway-load.lua')
  const { stdout } = hasWrk
    ? await run('wrk', ['-t1', `-c${connections}`, `-d${duration}s`, '-s', script, url], {
        env: { ...process.env, ...settings },
      })
    : await run(process.execPath, [
        join(here, 'gateway-load.ts'),
        JSON.stringify({ url, connections, rate, kind, same, start: first, seconds: duration }),
      ])
  const counted: Counted = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  if (!same) first += counted.requests + 1000
  if (counted.failed > 0) throw new Error(`${counted.failed} requests failed`)
  return counted
}

const ways = [
  { name: 'cache hit', kind: 'block', same: true },
  { name: 'pass-through', kind: 'call', same: false },
] as const

async function measureGateway(services: readonly Service[]): Promise<string> {
  const rows: unknown[][] = []
  // As many connections for the whole service, and as many for each worker: a worker with few connections handles fewer
  // requests in one turn of its event loop, and each turn has its price.
  const loads = services.flatMap((service) =>
    [...new Set([1, service.workers])].map((times) => ({
      service,
      connections: usualConnections * times,
    })),
  )
  for (const way of ways) {
    const samples = loads.map((): { perCpu: number; rate: number; p99: number }[] => [])
    for (const { service, connections } of loads)
      await load(service, way, warmUpSeconds, { connections })
    for (let round = 0; round < rounds; round++)
      for (const [index, { service, connections }] of loads.entries()) {
        const before = await service.cpu()
        const { requests, p99 } = await load(service, way, seconds, { connections })
        const cpu = (await service.cpu()) - before
        samples[index]!.push({ perCpu: requests / cpu, rate: requests / seconds, p99 })
      }
    const of = (index: number, field: 'perCpu' | 'rate' | 'p99') =>
      median(samples[index]!.map((one) => one[field]))
    for (const [index, { service, connections }] of loads.entries())
      rows.push([
        ...[way.name, service.workers, connections, Math.round(of(index, 'perCpu'))],
        (of(0, 'perCpu') / of(index, 'perCpu')).toFixed(2),
        ...[Math.round(of(index, 'rate')), (of(index, 'rate') / of(0, 'rate')).toFixed(2)],
        of(index, 'p99').toFixed(2),
      ])
  }
  const columns = [
    ...['Asked for', 'workers', 'connections', 'requests per CPU-second'],
    'CPU per request of one worker',
  ]
  return `As much as the connections take, ${hasWrk ? 'wrk with one thread' : 'a load generator of our own'}, ${seconds} s each, median of ${rounds} interleaved rounds; CPU of all processes of the service without the database. The generator and the node run on the same ${availableParallelism()} cores: requests per second cannot double here, requests per CPU-second show what a larger machine would give.\n\n${table([...columns, 'requests/s', 'of one worker', 'p99 ms'], rows)}`
}

const blocksAtOnce = 50

/** Mines as fast as the node can until the signal aborts; answers with how many blocks there were. */
async function mineUntil(signal: AbortSignal, mine: (blocks: number) => Promise<unknown>) {
  let mined = 0
  for (; !signal.aborted; mined += blocksAtOnce) await mine(blocksAtOnce)
  return mined
}

async function measureTracking(services: readonly Service[]): Promise<string> {
  const rows: unknown[][] = []
  const [way] = ways
  for (const service of services) {
    await service.track()
    const most = (await load(service, way, seconds)).requests / seconds
    const alone: number[] = []
    const beside: number[] = []
    const blocks: number[] = []
    for (let round = 0; round < rounds; round++) {
      alone.push((await load(service, way, seconds, { rate: most * 0.8 })).p99)
      const over = new AbortController()
      const mining = mineUntil(over.signal, service.mine)
      beside.push((await load(service, way, seconds, { rate: most * 0.8 })).p99)
      over.abort()
      blocks.push((await mining) / seconds)
      const deadline = Date.now() + 120_000
      while ((await service.lag()) > 0 && Date.now() < deadline) await delay(200)
    }
    const [own, other] = [median(alone), median(beside)]
    rows.push([
      ...[service.workers, Math.round(median(blocks)), own.toFixed(2), other.toFixed(2)],
      (other / own).toFixed(2),
    ])
  }
  return `Cache hits at 80 % of what the service takes, alone and while its tracker stores empty blocks as fast as a node mines them, median of ${rounds} rounds of ${seconds} s.\n\n${table(['workers', 'blocks/s', 'p99 ms alone', 'p99 ms while tracking', 'ratio'], rows)}`
}

/** WebSocket clients in a process of their own. */
function openClients() {
  const child = fork(join(here, 'fanout-clients.ts'))
  children.push(child)
  const order = async (message: object) => {
    child.send(message)
    await once(child, 'message')
  }
  return { order, close: () => child.send({ close: true }) }
}

async function measureFanOut(services: readonly Service[], mine: () => void): Promise<string> {
  const subscribe = '{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads",{}]}'
  const groups = services.map(() => openClients())
  for (const [index, service] of services.entries())
    await groups[index]!.order({ open: service.wsUrl('heads'), count: clients, subscribe })
  const rates = services.map((): number[] => [])
  const heads = 10
  let expected = 0
  for (let round = 0; round <= rounds; round++) {
    const before = await Promise.all(services.map((service) => service.cpu()))
    for (let head = 0; head < heads; head++) {
      mine()
      expected += clients
      await Promise.all(groups.map((group) => group.order({ wait: expected })))
    }
    const after = await Promise.all(services.map((service) => service.cpu()))
    // The first round warms up.
    if (round > 0)
      for (const [index, cpu] of after.entries())
        rates[index]!.push((heads * clients) / (cpu - before[index]!))
  }
  for (const group of groups) group.close()
  const rows = services.map(({ workers }, index) => [
    ...[workers, Math.round(median(rates[index]!))],
    (median(rates[index]!) / median(rates[0]!)).toFixed(2),
  ])
  return `${clients} WebSocket clients, one head of 1.2 KB to each, median of ${rounds} rounds of ${heads} heads.\n\n${table(['workers', 'deliveries per CPU-second', 'of one worker'], rows)}`
}

try {
  const [stub, node] = [await startStub(), await startNode()]
  const nodes = { ropsten: stub, heads: node.url }
  const services: Service[] = []
  for (const count of counts) services.push(await startPortolan(count, nodes))
  const texts: string[] = []
  if (isWanted('gateway')) texts.push(await measureGateway(services))
  if (isWanted('tracking')) texts.push(await measureTracking(services))
  if (isWanted('fan-out')) texts.push(await measureFanOut(services, () => void node.mine()))
  const text = texts.join('\n\n')
  // One part alone would replace the others in the results.
  if (only !== undefined) console.log(text)
  else await writeSection('Several processes', 'node bench/scale.ts', text)
  await Promise.all(services.map((service) => service.stop()))
  node.stop()
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const child of children) child.kill()
  await Promise.race([
    Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit'))),
    delay(30_000),
  ])
  await rm(dir, { recursive: true, force: true, maxRetries: 5 })
  process.exit()
}
