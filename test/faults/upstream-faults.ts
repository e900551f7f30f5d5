import { setTimeout as delay } from 'node:timers/promises'
import { createPool } from '../../src/chains/evm/pool/pool.ts'
import type { Pool, PoolOutcome, PoolRequest } from '../../src/chains/evm/pool/pool-types.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { startChain, type TestChain } from '../helpers/anvil.ts'
import { createRandom } from '../helpers/random.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { readNumbers } from './program.ts'
import { type FaultProxy, proxyFaults, startFaultProxy } from './upstream-proxy.ts'

const nodeFaults = ['kill', 'pause', 'lag'] as const
type Fault = (typeof proxyFaults)[number] | (typeof nodeFaults)[number]

/** What a campaign came to. */
export type Outcome = {
  requests: number
  /** Answers that are not the truth. */
  wrong: string[]
  /** Failures, though there was always a node that could have answered. */
  failed: string[]
  faults: Partial<Record<Fault, number>>
  /** Milliseconds; a call may wait for all those before it, with an allowance for the faults. */
  latency: { p50: number; p99: number; worst: number; bound: number }
}

type Question = { request: PoolRequest; isTrue(result: unknown): boolean }

const history = 60
const lag = 50

/** Questions of which the answers are known. */
async function prepareQuestions(
  chain: TestChain,
  pool: Pool,
): Promise<((n: number) => Question)[]> {
  const node = chain.nodes[0]!
  const blocks = await Promise.all(
    Array.from({ length: history }, (_, number) =>
      node.call<{ hash: string }>('eth_getBlockByNumber', [`0x${number.toString(16)}`, false]),
    ),
  )
  const accounts = await node.call<string[]>('eth_accounts')
  const balance = await node.call('eth_getBalance', [accounts[0], 'latest'])
  const common = { idempotent: true, timeoutMs: 60_000 }
  return [
    (n) => ({
      request: {
        ...common,
        method: 'eth_getBlockByNumber',
        params: `["0x${(n % history).toString(16)}",false]`,
        minBlock: n % history,
      },
      isTrue: (result) => (result as { hash: string } | null)?.hash === blocks[n % history]!.hash,
    }),
    (n) => ({
      request: {
        ...common,
        method: 'eth_getBalance',
        params: `["${accounts[n % accounts.length]}","latest"]`,
      },
      isTrue: (result) => result === balance,
    }),
    () => {
      // A client that has seen this head must not be shown an older one.
      const seen = pool.head()?.number ?? 0
      return {
        request: { ...common, method: 'eth_blockNumber', params: '[]', minBlock: seen },
        isTrue: (result) => Number(result) >= seen,
      }
    },
    () => ({
      request: { ...common, method: 'net_version', params: '[]' },
      isTrue: (result) => result === '31337',
    }),
  ]
}

/** Keeps many calls in flight while one or two of three nodes fail in every way. */
export async function runCampaign({
  requests,
  inFlight,
  seed,
  kinds = 0,
  first,
  onFault = () => {},
}: {
  /** How many at least. */
  requests: number
  inFlight: number
  seed: number
  /** How many kinds of faults are to be seen before it ends. */
  kinds?: number
  /** The fault that is seen in any case. */
  first?: Fault
  onFault?: (text: string) => void
}): Promise<Outcome> {
  const random = createRandom(seed)
  const chain = await startChain(3)
  await chain.mine(history)
  const proxies = await Promise.all(chain.nodes.map(({ port }) => startFaultProxy(port)))
  const pool = createPool({
    network: 'faults',
    prefix: 'eth',
    upstreams: proxies.map(({ url }, index) => ({ url, name: `node-${index}` })),
    clock: systemClock,
    log: silentLog,
  })
  try {
    await waitFor('all nodes are healthy', () =>
      pool
        .status()
        .every(({ state, capabilities }) => state === 'healthy' && capabilities.length > 0),
    )
    const questions = await prepareQuestions(chain, pool)
    const outcome: Outcome = { requests: 0, wrong: [], failed: [], faults: {}, latency: zero }
    const isOver = { value: false }
    const troubles = trouble({
      ...{ chain, proxies, pool, random, isOver, first, onFault },
      faults: outcome.faults,
    })
    const isEnough = () =>
      outcome.requests >= requests && Object.keys(outcome.faults).length >= kinds
    const begun = performance.now()
    const times = await askAll(pool, { isEnough, inFlight, random, questions, outcome })
    isOver.value = true
    const queueMs = (inFlight * (performance.now() - begun)) / outcome.requests
    await troubles
    outcome.latency = { ...quantilesOf(times), bound: Math.round(10_000 + 1.5 * queueMs) }
    return outcome
  } finally {
    await pool.stop()
    await Promise.all(proxies.map((proxy) => proxy.stop()))
    await chain.stop()
  }
}

const zero = { p50: 0, p99: 0, worst: 0, bound: 0 }

function askAll(
  pool: Pool,
  {
    isEnough,
    inFlight,
    random,
    questions,
    outcome,
  }: {
    isEnough: () => boolean
    inFlight: number
    random: () => number
    questions: ((n: number) => Question)[]
    outcome: Outcome
  },
): Promise<number[]> {
  const { promise, resolve } = Promise.withResolvers<number[]>()
  const times: number[] = []
  const check = ({ request, isTrue }: Question, answer: PoolOutcome): void => {
    const text = () => `${request.method} ${request.params}: ${JSON.stringify(answer)}`
    if ('failure' in answer) outcome.failed.push(text())
    else if (!answer.ok || !isTrue(JSON.parse(answer.result)))
      outcome.wrong.push(text().slice(0, 300))
  }
  const next = (): void => {
    const number = outcome.requests++
    const question = questions[Math.trunc(random() * questions.length)]!(number)
    const startedAt = performance.now()
    pool.send(question.request, (answer) => {
      times.push(performance.now() - startedAt)
      check(question, answer)
      if (!isEnough()) next()
      else if (times.length === outcome.requests) resolve(times)
    })
  }
  for (let started = 0; started < inFlight; started++) next()
  return promise
}

type Trouble = {
  chain: TestChain
  proxies: FaultProxy[]
  pool: Pool
  random: () => number
  isOver: { value: boolean }
  first: Fault | undefined
  faults: Outcome['faults']
  onFault: (text: string) => void
}

/** One or two nodes fail at a time; the third is well and at the head. */
async function trouble({
  chain,
  proxies,
  pool,
  random,
  isOver,
  first,
  faults,
  onFault,
}: Trouble): Promise<void> {
  // Every fault once before any comes again.
  let deck: Fault[] = first ? [first] : []
  const draw = (): Fault => {
    if (deck.length === 0) deck = [...proxyFaults, ...nodeFaults]
    return deck.splice(Math.trunc(random() * deck.length), 1)[0]!
  }
  for (let turn = 0; !isOver.value; turn++) {
    const well = turn % 3
    const victims = [0, 1, 2].filter(
      (index) => index !== well && (index === (turn + 1) % 3 || random() < 0.5),
    )
    const heals = await Promise.all(
      victims.map(async (index) => {
        const fault = draw()
        faults[fault] = (faults[fault] ?? 0) + 1
        onFault(`node-${index} ${fault}`)
        return cause(fault, index, well, { chain, proxies })
      }),
    )
    await delay(300 + random() * 1_500)
    for (const heal of heals) await heal()
    // The next one to be well must be known as such before the others fail: on a busy machine that takes longer.
    await delay(2_500)
    await waitFor('all nodes are healthy again', () =>
      pool.status().every(({ state }) => isOver.value || state === 'healthy'),
    )
  }
}

async function cause(
  fault: Fault,
  index: number,
  well: number,
  { chain, proxies }: Pick<Trouble, 'chain' | 'proxies'>,
): Promise<() => Promise<void>> {
  const node = chain.nodes[index]!
  if (fault === 'kill') {
    await node.kill()
    return async () => void (await chain.restart(index, chain.nodes[well]))
  }
  if (fault === 'pause') {
    node.pause()
    return async () => node.resume()
  }
  if (fault === 'lag') {
    const others = chain.nodes.filter((other) => other !== node)
    const reachable = others.filter((other) => other === chain.nodes[well])
    await chain.mine(lag, reachable)
    return async () => {
      const best = await chain.height(chain.nodes[well]!)
      for (const other of chain.nodes) {
        const missing = best - (await chain.height(other).catch(() => best))
        if (missing > 0) await chain.mine(missing, [other])
      }
    }
  }
  const proxy = proxies[index]!
  proxy.set(fault)
  return async () => proxy.set(undefined)
}

function quantilesOf(times: number[]): Omit<Outcome['latency'], 'bound'> {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round(sorted[Math.trunc((sorted.length - 1) * share)] ?? 0)
  return { p50: at(0.5), p99: at(0.99), worst: at(1) }
}

if (import.meta.main) {
  const numbers = readNumbers({ requests: 100_000, 'in-flight': 10_000, seed: 1 })
  const outcome = await runCampaign({
    requests: numbers.requests,
    inFlight: numbers['in-flight'],
    seed: numbers.seed,
    kinds: proxyFaults.length + nodeFaults.length,
    onFault: (text) => console.log(text),
  })
  const { wrong, failed, latency } = outcome
  console.log({ ...outcome, wrong: wrong.slice(0, 10), failed: failed.slice(0, 10) })
  console.log(
    `${wrong.length} wrong, ${failed.length} failed, the longest took ${latency.worst} ms of ${latency.bound}`,
  )
  if (wrong.length > 0 || failed.length > 0 || latency.worst > latency.bound) process.exitCode = 1
}
