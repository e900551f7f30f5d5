import { expect, test } from 'vitest'
import type { WorldBlock } from '../../src/gateway/testing/feed-world.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { startStreams, testLog } from './gateway-ws.ts'

// Two nodes fork at random while two clients on each surface read the chain: HTTP calls, filters and
// subscriptions. Every answer must fit one sequence of heads, and all answers of a moment one branch.

// The tests take a sample; the campaign sets BRANCH_SCRIPTS=500.
const scripts = Number(process.env.BRANCH_SCRIPTS ?? 8)
const seed = Number(process.env.BRANCH_SEED ?? 1)

/** What a client saw: a block, between two moments. */
type Seen = { sent: number; received: number; number: number; hash: string; how: string }

const random = (state: number) => () => {
  state = (state + 0x6d2b79f5) | 0
  let value = Math.imul(state ^ (state >>> 15), 1 | state)
  value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
  return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
}

const quantity = (number: number) => `0x${number.toString(16)}`
const transactionAt = (number: number) => `0x7e${number.toString(16).padStart(62, '0')}`
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('every client sees one sequence of heads, and the answers of a moment belong to one branch', {
  timeout: 120_000 + scripts * 6_000,
}, async () => {
  const { gateway, world, nodes, open } = await startStreams({ nodes: 2 })
  const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]]
  const next = random(seed)
  const below = (limit: number) => Math.floor(next() * limit)
  const block = (parent: WorldBlock) =>
    world.mine(parent, [testLog(parent.number + 1)], [transactionAt(parent.number + 1)])
  const branch = (from: WorldBlock, length: number) => {
    let tip = from
    for (let left = length; left > 0; left--) tip = block(tip)
    return tip
  }
  const ancestor = (from: WorldBlock, depth: number) => {
    let at = from
    for (let left = depth; left > 0 && at.number > first.number; left--) at = world.get(at.parent)
    return at
  }
  const first = a.node.head
  let tip = first
  let time = 0
  const seen: Seen[] = []
  const sockets = await Promise.all([open(), open()])
  const heads = await Promise.all(sockets.map((socket) => socket.subscribe('newHeads')))
  const logs = await Promise.all(sockets.map((socket) => socket.subscribe('logs', {})))
  for (const [index, { ws }] of sockets.entries())
    ws.on('message', (data) => {
      const { params } = JSON.parse(String(data))
      const { subscription, result } = params ?? {}
      if (subscription === heads[index]) {
        const now = ++time
        const { number, hash } = result
        seen.push({ sent: now, received: now, number: Number(number), hash, how: 'newHeads' })
      }
    })
  const filters = await Promise.all(
    [0, 1].map(async () => (await gateway.rpc('eth_newBlockFilter')).result as string),
  )
  const polled: string[][] = [[], []]
  const poll = async () => {
    for (const [index, id] of filters.entries())
      polled[index]?.push(...(await gateway.rpc('eth_getFilterChanges', [id])).result)
  }

  const announced = (): string => {
    const hashes = sockets[0]?.pushes(heads[0] as string).slice(-12) ?? []
    return hashes[below(hashes.length)]?.hash ?? first.hash
  }
  const calls = [
    (number: number) => ['eth_getBlockByNumber', [quantity(number), false]],
    (number: number) => ['eth_getBlockByNumber', [quantity(number), true]],
    (number: number) => ['eth_getTransactionReceipt', [transactionAt(number)]],
    (number: number) => [
      'eth_getLogs',
      [{ fromBlock: quantity(number), toBlock: quantity(number) }],
    ],
    () => ['eth_getBlockByNumber', ['latest', false]],
    (number: number) => ['eth_getTransactionByHash', [transactionAt(number)]],
    (number: number) => ['eth_getBlockReceipts', [quantity(number)]],
    // By hashes that were announced, whether they have left the chain meanwhile or not.
    () => ['eth_getBlockByHash', [announced(), false]],
    () => ['eth_getBlockByHash', [announced(), true]],
    () => ['eth_getLogs', [{ blockHash: announced() }]],
  ] as ((number: number) => [string, unknown[]])[]

  let isReading = true
  const failures: string[] = []
  const read = async () => {
    while (isReading) {
      const call = calls[below(calls.length)] as (typeof calls)[0]
      const [method, params] = call(Math.max(first.number + 1, tip.number - below(5)))
      const sent = ++time
      const { result, error } = await gateway.rpc(method, params)
      const received = ++time
      // EIP-234: of a block that has left the chain.
      if (error && error.message !== 'unknown block') failures.push(`${method}: ${error.message}`)
      for (const one of [result].flat()) {
        if (!one) continue
        const number = Number(one.blockNumber ?? one.number)
        const hash = one.blockHash ?? one.hash
        if (number > first.number)
          seen.push({ sent, received, number, hash, how: `${method} ${JSON.stringify(params)}` })
        for (const transaction of Array.isArray(one.transactions) ? one.transactions : [])
          if (transaction.blockHash && transaction.blockHash !== hash) failures.push('mixed block')
      }
      await pause(below(4))
    }
  }
  const readers = [read(), read()]

  const go = async (head: WorldBlock) => {
    tip = head
    const order = below(2) === 0 ? [a, b] : [b, a]
    for (const node of order) {
      // A silent node is found out by its answers, or by the next probe.
      node.show(head, below(3) === 0)
      await pause(below(3) * 15)
    }
  }
  for (let script = 0; script < scripts; script++) {
    for (let steps = 2 + below(4); steps > 0; steps--) {
      const kind = below(4)
      if (kind === 0) await go(branch(tip, 1 + below(3)))
      else if (kind === 1) {
        const depth = 1 + below(4)
        await go(branch(ancestor(tip, depth), depth + 1 + below(2)))
      } else if (kind === 2) {
        const depth = 1 + below(3)
        await go(branch(ancestor(tip, depth), depth))
      } else {
        // One node alone on a shorter branch, then back.
        const aside = branch(ancestor(tip, 2), 1)
        b.show(aside, below(2) === 0)
        await pause(30 + below(60))
        await go(branch(tip, 1))
      }
      await pause(20 + below(80))
    }
    await go(branch(tip, 1))
    await waitFor('all clients have seen the tip', async () => {
      await poll()
      const last = sockets.map((socket, index) => socket.pushes(heads[index] as string).at(-1))
      return (
        last.every((head) => head?.hash === tip.hash) &&
        polled.every((hashes) => hashes.at(-1) === tip.hash)
      )
    })
  }
  isReading = false
  await Promise.all(readers)

  const [one = [], two = []] = sockets.map((socket, index) =>
    socket.pushes(heads[index] as string).map(({ hash }) => hash as string),
  )
  expect(two).toEqual(one)
  expect(polled).toEqual([one, one])
  const logsOf = (index: number) =>
    sockets[index]?.pushes(logs[index] as string).map((log) => `${log.blockHash} ${log.removed}`)
  await waitFor('all logs', () => logsOf(0)?.length === logsOf(1)?.length)
  expect(logsOf(1)).toEqual(logsOf(0))
  expect(failures).toEqual([])
  expect(
    violationsOf(
      one.map((hash) => world.get(hash)),
      seen,
    ),
  ).toEqual([])
  expect(seen.length).toBeGreaterThan(scripts * 20)
})

/** What cannot be explained by one chain that changes as the sequence of heads says. */
function violationsOf(sequence: readonly WorldBlock[], seen: readonly Seen[]): string[] {
  // A block may come back: a node that lags behind its own announcement takes it back for a moment.
  const spans = new Map<string, { from: number; to: number }[]>()
  const canonical = new Map<number, { from: number; to: number }>()
  for (const [epoch, { number, hash }] of sequence.entries()) {
    for (const [height, span] of canonical)
      if (height >= number) {
        span.to = epoch
        canonical.delete(height)
      }
    const span = { from: epoch, to: Number.POSITIVE_INFINITY }
    canonical.set(number, span)
    spans.set(hash, [...(spans.get(hash) ?? []), span])
  }
  const violations: string[] = []
  /** Of the reads that are over, in the order of their ends: the epoch that each proves. */
  const over: { received: number; epoch: number }[] = []
  for (const { sent, received, number, hash, how } of [...seen].sort((x, y) => x.sent - y.sent)) {
    const own = spans.get(hash)
    if (!own?.[0]) {
      if (hasReturned(hash, number, seen))
        violations.push(`${how} gave ${number} ${hash}, which came back without being announced`)
      continue
    }
    let lower = 0
    if (how !== 'newHeads')
      for (const earlier of over)
        if (earlier.received < sent && earlier.epoch > lower) lower = earlier.epoch
    const span = own.find(({ to }) => to > lower)
    if (!span) violations.push(`${how} gave ${number} ${hash}, which had left the chain`)
    else over.push({ received, epoch: Math.max(span.from, lower) })
    if (over.length > 400) over.splice(0, 200, best(over.slice(0, 200)))
  }
  return violations.slice(0, 10)
}

/**
 * Subscribers may miss a block: when the service leaves it before its header is fetched, it is not announced
 * any more. Calls may return it until then, and never after a call has returned another block of that height.
 */
function hasReturned(hash: string, number: number, seen: readonly Seen[]): boolean {
  const atHeight = seen.filter((one) => one.number === number)
  const own = atHeight.filter((one) => one.hash === hash)
  const first = Math.min(...own.map(({ received }) => received))
  const left = atHeight.filter((one) => one.hash !== hash && one.sent > first)
  const leftAt = Math.min(...left.map(({ received }) => received))
  return own.some(({ sent }) => sent > leftAt)
}

const best = (reads: readonly { received: number; epoch: number }[]) =>
  reads.reduce((one, two) => ({
    received: Math.max(one.received, two.received),
    epoch: Math.max(one.epoch, two.epoch),
  }))
