import { afterEach, beforeEach, expect, test } from 'vitest'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { type ChangeablePool, createPool } from '../../chains/evm/pool/pool.ts'
import { type StubNode, startStub } from '../../chains/evm/testing/stub-node.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { type Channel, createChannel } from './channel.ts'
import { createNetworkBoard } from './network-board.ts'
import { createNetworkSharing, type SharedNetwork } from './network-sharing.ts'

const path = '/c/mainnet'

type Process = {
  pool: ChangeablePool
  shared: SharedNetwork
  /** Reads blocks, once for all processes. */
  read: ChangeablePool['request']
  requests(): number
  cut(): void
}

let node: StubNode
let processes: Process[] = []
let board = createNetworkBoard()

beforeEach(async () => {
  node = await startStub('node')
  board = createNetworkBoard()
})

afterEach(async () => {
  for (const { pool, shared } of processes) {
    shared.stop()
    await pool.stop()
  }
  processes = []
  await node.stop()
})

/** A process that uses the node, with a channel to the supervisor. */
const open = async (slot: number, { url = node.url, isServing = true } = {}): Promise<Process> => {
  let isCut = false
  const near: Channel = createChannel({
    send: (message) => void (!isCut && far.receive(structuredClone(message))),
    handlers: {
      lead: (value) => sharing.handlers.lead!(value),
      seen: (value) => sharing.handlers.seen!(value),
      read: (value) => sharing.handlers.read!(value),
    },
  })
  const far: Channel = createChannel({
    send: (message) => void (!isCut && near.receive(structuredClone(message))),
    handlers: board.handlersOf(
      slot,
      {
        ask: (kind, value, timeoutMs) => far.ask(kind, value, timeoutMs),
        post: (kind, value) => far.post(kind, value),
      },
      { isServing },
    ),
  })
  const sharing = createNetworkSharing(near)
  const shared = sharing.open(path)
  const pool = createPool({
    ...{ network: 'test', prefix: 'eth', clock: systemClock, log: silentLog, sharing: shared },
    upstreams: [{ url }],
    limits: { probeIntervalMs: 20, probeTimeoutMs: 100 },
  })
  shared.join()
  const requests = () => pool.status()[0]!.requests
  const process: Process = {
    ...{ pool, shared, requests, read: shared.share(pool.request) },
    cut: () => {
      isCut = true
    },
  }
  processes.push(process)
  await waitFor('the node is healthy', () => pool.status()[0]?.state === 'healthy')
  return process
}

/** Waits until a process makes no calls while another one probes. */
const isQuiet = async (follower: Process, leader: Process): Promise<void> => {
  await waitFor('only one process probes', async () => {
    const [before, after] = [follower.requests(), leader.requests() + 60]
    await waitFor('the other one probes', () => leader.requests() >= after)
    return follower.requests() === before
  })
}

test.each(['http', 'ws'] as const)(
  '%s: a node is probed by one process, and the other one has its heads',
  async (scheme) => {
    const url = scheme === 'ws' ? node.wsUrl : node.url
    // The background process is the first to use the node.
    const [follower, leader] = [await open(1, { url, isServing: false }), await open(2, { url })]
    await isQuiet(follower, leader)
    node.head += 3
    await waitFor('the head', () => follower.pool.head()?.number === node.head)
    expect(follower.pool.status()[0]).toMatchObject({ state: 'healthy', head: node.head })
    const capabilities = ['archive', 'block_receipts', 'subscriptions'] as const
    for (const one of capabilities) expect(follower.pool.can(one)).toBe(leader.pool.can(one))
    await isQuiet(follower, leader)
  },
)

test('another process probes when the first one has ended, or is silent', async () => {
  const [first, second, third] = [await open(1), await open(2), await open(3)]
  await isQuiet(second, first)
  board.gone(1)
  await isQuiet(third, second)
  second.cut()
  const before = third.requests()
  await waitFor('the third probes', () => third.requests() > before + 10)
  node.head += 1
  await waitFor('the head', () => third.pool.head()?.number === node.head)
})

test('a node that goes away is noticed by all, and used by all when it is back', async () => {
  const [leader, follower] = [await open(1), await open(2)]
  await isQuiet(follower, leader)
  node.chainId += 1
  for (const { pool } of processes)
    await waitFor('it is not used', () => pool.status()[0]?.state !== 'healthy')
  node.chainId -= 1
  for (const { pool } of processes)
    await waitFor('it is used', () => pool.status()[0]?.state === 'healthy')
  await isQuiet(follower, leader)
})

test('a block is read once for all processes', async () => {
  const [leader, follower] = [await open(1), await open(2)]
  await isQuiet(follower, leader)
  const read = { method: 'eth_getBlockByHash', params: `["0x${'1'.repeat(64)}",false]` }
  const ask = (process: Process) => process.read({ ...read, idempotent: true, timeoutMs: 5_000 })
  const asked = () => node.methods.filter((method) => method === read.method).length
  const answers = await Promise.all([ask(follower), ask(follower), ask(leader)])
  expect(answers.map((one) => 'ok' in one && one.ok)).toEqual([true, true, true])
  expect(asked()).toBe(1)
  leader.cut()
  expect(await ask(follower)).toEqual(answers[0])
  expect(asked()).toBe(2)
})

test('a tag whose block changes is asked by every process, and `finalized` once', async () => {
  const [leader, follower] = [await open(1), await open(2)]
  await isQuiet(follower, leader)
  const counted = async (tag: string) => {
    const request = { method: 'eth_getHeaderByNumber', params: `["${tag}"]`, idempotent: true }
    const before = node.methods.filter((method) => method === request.method).length
    const ask = (process: Process) => process.read({ ...request, timeoutMs: 5_000 })
    await Promise.all([ask(follower), ask(follower), ask(leader)])
    return node.methods.filter((method) => method === request.method).length - before
  }
  expect(await counted('finalized')).toBe(1)
  for (const tag of ['latest', 'safe', 'pending'])
    expect([tag, await counted(tag)]).toEqual([tag, 3])
})
