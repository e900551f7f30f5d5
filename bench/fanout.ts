import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { measureMatching } from './fanout-matching.ts'
import { startNode } from './fanout-node.ts'
import { cpuSeconds } from './lib/cpu.ts'
import { median, table, writeSection } from './lib/results.ts'

const here = import.meta.dirname
const rounds = Number(process.env.ROUNDS ?? 5)
const deliveries = Number(process.env.DELIVERIES ?? 100_000)
const sizes = (process.env.SIZES ?? '1000,10000').split(',').map(Number)
type Topic = 'newHeads' | 'logs'
const subscribeTo = (topic: Topic) =>
  `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["${topic}",{}]}`

const children: ChildProcess[] = []
const dir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-fanout-')))
// The database may run as another user.
await chmod(dir, 0o711)
const node = await startNode()

const rss = async (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])

async function startBare() {
  const child = spawn(process.execPath, [join(here, 'fanout-bare.ts'), node.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const [port] = (await once(child.stdout!, 'data')) as [Buffer]
  return { name: 'bare ws', url: `ws://127.0.0.1:${String(port).trim()}`, pid: child.pid! }
}

async function startPortolan() {
  const networks = { mainnet: { upstreams: [{ url: node.url }] } }
  const child = spawn(
    process.execPath,
    [join(here, '../bin/portolan.js'), 'start', '--chains', 'none'],
    {
      env: {
        ...process.env,
        CI: 'true',
        PORTOLAN_PORT: '0',
        PORTOLAN_SERVER__WORKERS: '1',
        PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
        PORTOLAN_DATA_DIR: join(dir, 'data'),
        PORTOLAN_CHAINS__C: JSON.stringify({ networks }),
        PORTOLAN_SERVER__CONNECTIONS_PER_ADDRESS: '100000',
        PORTOLAN_GATEWAY__CONNECTIONS_PER_KEY: '100000',
        PORTOLAN_GATEWAY__SUBSCRIPTIONS_PER_KEY: '100000',
        PORTOLAN_LIMITS__PER_SECOND_LIMIT: '-1',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  children.push(child)
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('Portolan did not start')))
    child.stdout!.on('data', (chunk) => String(chunk).includes('"started"') && resolve())
  })
  const { ws_url, member } = JSON.parse(await readFile(join(dir, 'data/connection.json'), 'utf8'))
  const url = `${ws_url}/c/mainnet/v1/ws/${member.api_key}`
  return { name: 'Portolan', url, pid: child.pid! }
}

/** Connections in a process of their own. */
function openClients(topic: Topic) {
  const child = fork(join(here, 'fanout-clients.ts'))
  children.push(child)
  const order = async (message: object) => {
    child.send(message)
    const ended = once(child, 'exit').then(() => {
      throw new Error('the process of the clients ended')
    })
    ended.catch(() => {})
    const [answer] = await Promise.race([once(child, 'message'), ended])
    return answer
  }
  let expected = 0
  return {
    open: (url: string, count: number) =>
      order({ open: url, count, subscribe: subscribeTo(topic) }),
    /** Waits until each of them has got one more. */
    wait: (count: number) => {
      expected += count
      return order({ wait: expected })
    },
    times: (): Promise<[string, number][]> => order({ times: true }),
    close: async () => {
      child.send({ close: true })
      await once(child, 'exit')
    },
  }
}

async function measureFanout(
  targets: { name: string; url: string; pid: number }[],
  size: number,
  topic: Topic,
) {
  const clients = targets.map(() => openClients(topic))
  const memory: number[] = []
  for (const [index, { url, pid }] of targets.entries()) {
    const before = await rss(pid)
    await clients[index]!.open(url, size)
    await delay(1_000)
    memory.push(((await rss(pid)) - before) / size)
  }
  const heads = Math.ceil(deliveries / size)
  const rates = targets.map((): number[] => [])
  for (let round = 0; round <= rounds; round++) {
    const before = targets.map(({ pid }) => cpuSeconds(pid))
    for (let head = 0; head < heads; head++) {
      node.mine()
      await Promise.all(clients.map((one) => one.wait(size)))
    }
    // The first round warms up.
    if (round > 0)
      for (const [index, { pid }] of targets.entries())
        rates[index]!.push((heads * size) / (cpuSeconds(pid) - before[index]!))
  }
  await Promise.all(clients.map((one) => one.close()))
  await delay(1_000)
  return targets.map(({ name }, index) => ({
    name,
    size,
    perCpuSecond: median(rates[index]!),
    kib: memory[index]!,
  }))
}

async function measureLatency(url: string) {
  const [direct, through] = [openClients('newHeads'), openClients('newHeads')]
  await direct.open(node.url, 1)
  await through.open(url, 1)
  for (let head = 0; head < 500; head++) {
    node.mine()
    await Promise.all([direct.wait(1), through.wait(1), delay(5)])
  }
  const known = new Map(await direct.times())
  const added = (await through.times())
    .slice(100)
    .map(([hash, at]) => at - (known.get(hash) ?? Number.NaN))
    .sort((a, b) => a - b)
  await Promise.all([direct.close(), through.close()])
  const at = (share: number) => added[Math.floor(added.length * share)] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}

try {
  const targets = [await startBare(), await startPortolan()]
  await delay(2_000)
  const { p50, p99 } = await measureLatency(targets[1]!.url)
  const rows = []
  const kinds = (['newHeads', 'logs'] as const).flatMap((topic) =>
    sizes.map((size) => ({ topic, size })),
  )
  for (const { topic, size } of kinds) {
    const [bare, own] = await measureFanout(targets, size, topic)
    for (const one of [bare!, own!])
      rows.push([
        one.name,
        topic,
        size,
        Math.round(one.perCpuSecond),
        (one.perCpuSecond / bare!.perCpuSecond).toFixed(2),
        one.kib.toFixed(1),
        (one.kib - bare!.kib).toFixed(1),
      ])
  }
  const matching = [1_000, 10_000, 100_000].map((count) => measureMatching(count))
  await writeSection(
    'Fan-out',
    'node bench/fanout.ts',
    `One head of 1.2 KB or one log of 0.6 KB from a node to all connections, each with one subscription; about ${deliveries} deliveries per round, median of ${rounds} rounds, both servers serve the same heads in the same run; CPU of the server process. Portolan links, fetches and checks each head, fetches logs by block and compares them with the bloom, and counts what clients have not read; the bare broadcaster passes the node's text on with \`ws.send\`. Memory is the growth of the process from opening the connections.

${table(['Server', 'subscription', 'connections', 'deliveries per CPU-second', 'of bare ws', 'KiB per connection', 'over bare ws'], rows)}

From the head at a direct subscriber to the same head at a subscriber of Portolan: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms (goals 5 and 25).

One block of 5,000 logs against different log subscriptions, CPU in one thread (goal: 20 ms at 10,000):

${table(
  ['subscriptions', 'matches', 'CPU ms per block'],
  matching.map(({ subscriptions, matches, ms }) => [subscriptions, matches, ms.toFixed(1)]),
)}`,
  )
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const child of children) child.kill()
  node.stop()
  await delay(1_000)
  await rm(dir, { recursive: true, force: true })
  process.exit()
}
