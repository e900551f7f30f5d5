import { type ChildProcess, execFile, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { stolenTicks } from '../test/helpers/stolen-cpu.ts'
import { startNode } from './fanout-node.ts'
import { ticksPerSecond } from './lib/cpu.ts'
import { boundCpu, canBoundCpu } from './lib/cpu-share.ts'
import { median, table, writeSection } from './lib/results.ts'
import { type Service, startService } from './scale-service.ts'

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
const titles = {
  cpu: 'CPU of a request',
  throughput: 'throughput with room',
  gateway: 'throughput on all cores',
  tracking: 'gateway beside a tracker',
  'fan-out': 'WebSocket clients',
}
const { only } = parseArgs({ options: { only: { type: 'string' } } }).values
const isWanted = (part: string) => only === undefined || only === part

const children: ChildProcess[] = []
const dir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-scale-')))
await chmod(dir, 0o711)
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    for (const child of children) child.kill()
    process.exit(1)
  })

async function startStub(): Promise<string> {
  const child = spawn(process.execPath, [join(here, 'gateway-stub.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const [port] = (await once(child.stdout!, 'data')) as [Buffer]
  return `http://127.0.0.1:${String(port).trim()}`
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

const spread = (values: readonly number[]) =>
  `${Math.min(...values).toFixed(2)}, ${Math.max(...values).toFixed(2)}`

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

const perWorker = Number(process.env.RATE ?? 1_500)
// Of one core. A window in which the hypervisor withheld more is left out.
const mostStolen = 0.04

/** Figures of a machine that was never left alone are no figures. */
const isMeasured = (samples: readonly (readonly number[])[]): void => {
  if (samples.some((one) => one.length === 0))
    throw new Error('the hypervisor withheld CPU in every window: measure again later')
}

const isDisturbed = (stolenBefore: number, from: number): boolean =>
  (stolenTicks() - stolenBefore) / ticksPerSecond >
  (mostStolen * (performance.now() - from)) / 1_000

/**
 * CPU per request at an equal and low rate per worker. All services are loaded at the same time, so that what the machine
 * does to one (withheld CPU, two hyper-threads on one core, other programs) it does to all, and their quotient is ours.
 * Connections and requests are in proportion to the workers: a worker with fewer handles fewer in one turn of its
 * event loop, and each turn has its price.
 */
async function measureCpu(services: readonly Service[]): Promise<string> {
  const rows: unknown[][] = []
  let excluded = 0
  for (const way of ways) {
    const micros = services.map((): number[] => [])
    const ratios = services.map((): number[] => [])
    const loadOf = (service: Service, duration: number) =>
      load(service, way, duration, {
        rate: perWorker * service.workers,
        connections: usualConnections * service.workers,
      })
    await Promise.all(services.map((service) => loadOf(service, warmUpSeconds)))
    for (let round = 0; round < rounds; round++) {
      const [stolen, from] = [stolenTicks(), performance.now()]
      const window = await Promise.all(
        services.map(async (service) => {
          const before = await service.cpu()
          const { requests } = await loadOf(service, seconds)
          return (((await service.cpu()) - before) * 1e6) / requests
        }),
      )
      if (isDisturbed(stolen, from)) excluded++
      else
        for (const [index, one] of window.entries()) {
          micros[index]!.push(one)
          ratios[index]!.push(one / window[0]!)
        }
    }
    isMeasured(micros)
    for (const [index, { workers }] of services.entries())
      rows.push([
        ...[way.name, workers, median(micros[index]!).toFixed(1)],
        ...[median(ratios[index]!).toFixed(3), spread(ratios[index]!)],
      ])
  }
  return `CPU of all processes of a service without the database, ${perWorker} requests/s and ${usualConnections} connections per worker, all services loaded at the same time in ${rounds} windows of ${seconds} s${excluded > 0 ? `, ${excluded} of ${rounds * ways.length} left out because the hypervisor withheld CPU` : ''}.\n\n${table(['Asked for', 'workers', 'µs of CPU per request', 'of one worker, median', 'from, to'], rows)}`
}

const share = Number(process.env.SHARE ?? 0.25)

/**
 * What workers carry when each of them has a core of its own and the load generator leaves room: each gets a small share
 * of a core, so that all services, the generator and the node together leave the machine a part of its time. All at once,
 * for the reason that `measureCpu` has.
 */
async function measureThroughput(services: readonly Service[]): Promise<string> {
  if (!canBoundCpu())
    return 'Throughput of workers with a share of a core each: not measured, this machine has no control groups of version 1.'
  const rows: unknown[][] = []
  const pids = (await Promise.all(services.map((service) => service.servers()))).flat()
  for (const way of ways) {
    // Before they are bounded: code that is not compiled yet takes many times as long.
    await Promise.all(services.map((service) => load(service, way, warmUpSeconds)))
    const bounds = pids.map((pid) => boundCpu([pid], share))
    const rates = services.map((): number[] => [])
    const ratios = services.map((): number[] => [])
    for (let round = 0; round <= rounds; round++) {
      const [stolen, from] = [stolenTicks(), performance.now()]
      const window = await Promise.all(
        services.map(async (service) => {
          const connections = usualConnections * service.workers
          return (await load(service, way, seconds, { connections })).requests / seconds
        }),
      )
      // The first round warms up.
      if (round === 0 || isDisturbed(stolen, from)) continue
      for (const [index, one] of window.entries()) {
        rates[index]!.push(one)
        ratios[index]!.push(one / window[0]!)
      }
    }
    for (const bound of bounds) bound.stop()
    isMeasured(rates)
    for (const [index, { workers }] of services.entries())
      rows.push([
        ...[way.name, workers, Math.round(median(rates[index]!))],
        ...[median(ratios[index]!).toFixed(2), spread(ratios[index]!), rates[index]!.length],
      ])
  }
  return `As much as ${usualConnections} connections per worker take, each worker with ${share} of a core, all services at the same time, so that the generator and the node have room, windows of ${seconds} s.\n\n${table(['Asked for', 'workers', 'requests/s', 'of one worker, median', 'from, to', 'windows'], rows)}`
}

// Of a tracker with its database: all together leave the cores a part of their time.
const trackerShare = Number(process.env.TRACKER_SHARE ?? 0.6)
// More blocks than are stored in a window: the tracker is behind until its end.
const blocksBehind = Number(process.env.BLOCKS ?? 800)

/** Until it has stored all blocks. */
async function isIdle(service: Service): Promise<void> {
  const deadline = Date.now() + 60_000
  while ((await service.tracking()).lag > 0 && Date.now() < deadline) await delay(200)
}

/**
 * The gateway of each service at 80 % of what it takes, alone, while another service catches up, and while its own tracker
 * does. The one in the middle shows what the machine does to it. Each worker has a share of a core, and each tracker with its
 * database, so that none of them waits for a core.
 */
async function measureTracking(services: readonly Service[]): Promise<string> {
  const rows: unknown[][] = []
  const [way] = ways
  for (const service of services) await service.track()
  // One worker tracks in its own process, so that its tracker would have a part of its share.
  for (const service of services.filter(({ workers }) => workers > 1)) {
    const other = services.find((one) => one !== service)!
    const connections = usualConnections * service.workers
    await load(service, way, warmUpSeconds, { connections })
    const bounds = canBoundCpu()
      ? [
          ...(await service.servers()).map((pid) => boundCpu([pid], share)),
          boundCpu(await service.trackers(), trackerShare),
          boundCpu(await other.trackers(), trackerShare),
        ]
      : []
    const beside = async (tracking: Service | undefined, rate: number) => {
      await tracking?.prepare(blocksBehind)
      await tracking?.catchUp()
      const [stolen, from] = [stolenTicks(), performance.now()]
      const before = await tracking?.tracking()
      const counted = await load(service, way, seconds, { connections, rate })
      const after = await tracking?.tracking()
      const disturbed = isDisturbed(stolen, from)
      if (after?.lag === 0) throw new Error('caught up before the window ended: more BLOCKS')
      if (tracking) await isIdle(tracking)
      return {
        ...counted,
        disturbed,
        stored: after ? after.block_number - before!.block_number : 0,
      }
    }
    const most = (await beside(other, 0)).requests / seconds
    const cases = [undefined, other, service]
    const times = cases.map((): number[] => [])
    const blocks: number[] = []
    for (let round = 0; round < rounds; round++)
      for (const [at, tracking] of cases.entries()) {
        const { p99, disturbed, stored } = await beside(tracking, most * 0.8)
        if (disturbed) continue
        times[at]!.push(p99)
        if (tracking === service) blocks.push(stored / seconds)
      }
    for (const bound of bounds) bound.stop()
    isMeasured(times)
    const [alone, machine, own] = times.map(median)
    rows.push([
      ...[service.workers, Math.round(most * 0.8), Math.round(median(blocks))],
      ...[alone!, machine!, own!].map((ms) => ms.toFixed(2)),
      ...[own! / alone!, own! / machine!].map((ratio) => ratio.toFixed(2)),
    ])
  }
  const columns = ['workers', 'requests/s', 'blocks/s']
  const p99s = ['p99 ms alone', 'while another catches up', 'while it catches up']
  return `Cache hits at 80 % of what the service takes beside a busy machine${canBoundCpu() ? `, each worker with ${share} of a core and each tracker with its database with ${trackerShare}` : ''}: alone, while the tracker of another service catches up with blocks of 50 token transfers to tracked addresses, and while its own does; median of ${rounds} interleaved rounds of ${seconds} s without those in which the hypervisor withheld CPU.\n\n${table([...columns, ...p99s, 'of alone', 'of another catching up'], rows)}`
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
  for (const count of counts)
    services.push(await startService({ workers: count, nodes, dir, children }))
  const measure: Record<string, () => Promise<string>> = {
    cpu: () => measureCpu(services),
    throughput: () => measureThroughput(services),
    gateway: () => measureGateway(services),
    tracking: () => measureTracking(services),
    'fan-out': () => measureFanOut(services, () => void node.mine()),
  }
  for (const [part, title] of Object.entries(titles))
    if (isWanted(part)) {
      const command = `node bench/scale.ts --only ${part}`
      await writeSection(`Several processes: ${title}`, command, await measure[part]!())
    }
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
