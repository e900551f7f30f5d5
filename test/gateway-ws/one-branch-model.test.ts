import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../gateway/gateway.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { connect } from './client.ts'
import { type Seen, violationsOf } from './one-branch-check.ts'
import {
  createVerifiedWorld,
  trackedAddress,
  type VerifiedBlock,
  type VerifiedWorld,
  waitingSender,
} from './verified-world.ts'
import { type NodeServer, serveNode } from './world-node.ts'

// Two nodes fork at random while two clients on each surface read the chain: HTTP calls, chain queries, filters,
// subscriptions and a tracked wallet. Every answer must fit one sequence of heads, and all answers of a moment one branch.
//
// The tracker stores: it removes the blocks of a left branch in a database transaction that begins after the switch. Until
// that commits, lists of the wallet show the left branch, as a whole: no answer mixes two branches, and none shows a
// left block later than `trackerMs` after the switch.

// The tests take a sample; the campaign sets BRANCH_SCRIPTS=500.
const scripts = Number(process.env.BRANCH_SCRIPTS ?? 6)
const seed = Number(process.env.BRANCH_SEED ?? 1)
/** The rollback takes some milliseconds; the rest is for a busy machine. */
const trackerMs = 5_000

const chainQueries = [
  { name: 'GetTransactionReceipt', member: 'transaction_receipt' },
  { name: 'ListLogs', member: 'logs' },
]

/** What a list of the wallet showed: the blocks of its transfers. */
type Listed = { sentAt: number; blocks: readonly VerifiedBlock[] }
type Head = { number: string; hash: string }

const random = (state: number) => () => {
  state = (state + 0x6d2b79f5) | 0
  let value = Math.imul(state ^ (state >>> 15), 1 | state)
  value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
  return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
}

const quantity = (number: number) => `0x${number.toString(16)}`
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('every client sees one sequence of heads, and the answers of a moment belong to one branch', {
  timeout: 120_000 + scripts * 8_000,
}, async () => {
  const next = random(seed)
  const below = (limit: number) => Math.floor(next() * limit)
  const world = createVerifiedWorld(2)
  const [a, b] = (await Promise.all(world.nodes.map((node) => serveNode(world, node)))) as [
    NodeServer,
    NodeServer,
  ]
  const first = world.mine(world.mine(world.genesis))
  for (const node of [a, b]) node.show(first)
  const gateway = await startService([a.wsUrl, b.wsUrl])
  const wallet = await trackWallet(gateway)
  const chain = createForks({ world, nodes: [a, b], below, first })
  const clients = await openClients(gateway)
  const seen: Seen[] = []
  const listed: Listed[] = []
  /** When each head was announced. */
  const announced: { at: number; number: number; hash: string }[] = []
  let time = 0
  clients.onHead((index, { number, hash }) => {
    const now = ++time
    seen.push({ sent: now, received: now, number: Number(number), hash, how: 'newHeads' })
    if (index === 0) announced.push({ at: Date.now(), number: Number(number), hash })
  })

  const failures: string[] = []
  const see = (sent: number, number: number, hash: string, how: string) => {
    if (number > first.number) seen.push({ sent, received: ++time, number, hash, how })
  }
  // The first is in every block of this height, the others in one block each.
  const transactionAt = (number: number) => {
    const all = world.transactionsAt(number)
    return all[below(2) === 0 ? 0 : below(all.length)] as string
  }
  const queries = { all: 0, refused: 0 }
  const reading = { gateway, world, transactionAt, see, failures, queries }
  const reads = [
    ...callsOf({ ...reading, clients, below }),
    ...queriesOf(reading),
    async () => {
      const sentAt = Date.now()
      listed.push({ sentAt, blocks: await wallet.blocks(world) })
    },
  ]
  let isReading = true
  const read = async () => {
    while (isReading) {
      const number = Math.max(first.number, chain.tip().number - below(5))
      await reads[below(reads.length)]?.(number, ++time).catch((error) =>
        failures.push(String(error)),
      )
      await pause(below(4))
    }
  }
  const readers = [read(), read()]

  try {
    for (let script = 0; script < scripts; script++) {
      await chain.run()
      const tip = chain.tip()
      await Promise.all([
        waitFor('all clients have seen the tip', () => clients.areAt(tip.hash)),
        waitFor('the wallet shows the branch', async () =>
          wallet.isAt(tip, await wallet.blocks(world)),
        ),
        waitFor('what waits is what is in no block', async () =>
          isDeepStrictEqual(await listWaiting(gateway), chain.waiting()),
        ),
      ])
    }
  } finally {
    isReading = false
    await Promise.all(readers)
  }

  const heads = await clients.expectEqual()
  expect(failures).toEqual([])
  expect(queries.refused).toBeLessThan(Math.max(3, queries.all / 50))
  expect(
    violationsOf(
      heads.map((hash) => world.get(hash)),
      seen,
    ),
  ).toEqual([])
  expect(staleLists(listed, announced)).toEqual([])
  expect(seen.length).toBeGreaterThan(scripts * 20)
  expect(listed.length).toBeGreaterThan(scripts)
  const surfaces = new Set(seen.map(({ how }) => how.split(' ')[0]))
  for (const { name } of chainQueries) expect(surfaces).toContain(name)
})

/** A service with the gateway, chain queries and wallets on one network. */
async function startService(urls: readonly string[]): Promise<TestGateway> {
  const upstreams = urls.map((url, index) => ({ url, name: `node-${index}` }))
  // The signatures of the blocks are not real.
  const networks = { mainnet: { upstreams, verify_senders: false } }
  return await startTestGateway(urls, {
    chains: { c: { variants: ['C', 'Q'], record_pending: true, networks } } as never,
  })
}

/** The transactions that wait for a block, by nonce. */
async function listWaiting(gateway: TestGateway): Promise<string[]> {
  const body = { from: waitingSender }
  const { json } = await gateway.call(gateway.tenant.member, 'c/ListPendingTransactions', body)
  return json.pending_transactions.map((one: { transaction_hash: string }) => one.transaction_hash)
}

/** The transfers and the balance of the account that every block pays. */
async function trackWallet(gateway: TestGateway) {
  const ask = async (operation: string, body: object) => {
    const { status, json, text } = await gateway.call(gateway.tenant.member, `c/${operation}`, body)
    expect([operation, status, status === 200 ? '' : text]).toEqual([operation, 200, ''])
    return json
  }
  const { wallet_id } = await ask('RegisterWallet', {
    ...{ name: 'model', address: trackedAddress, confirmation: 1 },
  })
  return {
    /** Each block has one transfer that no other has. */
    blocks: async (world: VerifiedWorld): Promise<VerifiedBlock[]> => {
      const { transfers } = await ask('ListTransfers', { wallet_id, page_size: 24 })
      return transfers.flatMap(
        (one: { transaction_hash: string }) => world.blockOf(one.transaction_hash) ?? [],
      )
    },
    isAt: async (tip: VerifiedBlock, blocks: readonly VerifiedBlock[]): Promise<boolean> => {
      if (blocks[0]?.hash !== tip.hash) return false
      const { assets } = await ask('ListAssets', { wallet_id, asset_type: 'ASSET_TYPE_C' })
      return assets[0]?.balance === String(tip.balance)
    },
  }
}

type Reading = {
  gateway: TestGateway
  world: VerifiedWorld
  failures: string[]
  /** How many chain queries there were, and how many were refused because the branch changed too often. */
  queries: { all: number; refused: number }
  /** A transaction of a block of this height, whether the block is on the branch or not. */
  transactionAt(number: number): string
  see(sent: number, number: number, hash: string, how: string): void
}

/** Calls of the gateway, each about a block of this height. */
function callsOf({
  gateway,
  world,
  transactionAt,
  clients,
  below,
  see,
  failures,
}: Reading & {
  clients: Awaited<ReturnType<typeof openClients>>
  below(limit: number): number
}) {
  const announced = (): string => {
    const hashes = clients.heads(0).slice(-12)
    return hashes[below(hashes.length)] ?? world.genesis.hash
  }
  const calls: ((number: number) => [string, unknown[]])[] = [
    (number) => ['eth_getBlockByNumber', [quantity(number), false]],
    (number) => ['eth_getBlockByNumber', [quantity(number), true]],
    (number) => ['eth_getTransactionReceipt', [transactionAt(number)]],
    (number) => ['eth_getLogs', [{ fromBlock: quantity(number), toBlock: quantity(number) }]],
    () => ['eth_getBlockByNumber', ['latest', false]],
    (number) => ['eth_getTransactionByHash', [transactionAt(number)]],
    (number) => ['eth_getBlockReceipts', [quantity(number)]],
    () => ['eth_getFilterLogs', [clients.logFilters[below(2)]]],
    // By hashes that were announced, whether they have left the chain meanwhile or not.
    () => ['eth_getBlockByHash', [announced(), false]],
    () => ['eth_getBlockByHash', [announced(), true]],
    () => ['eth_getLogs', [{ blockHash: announced() }]],
  ]
  return calls.map((call) => async (height: number, sent: number) => {
    const [method, params] = call(height)
    const { result, error } = await gateway.rpc(method, params)
    // EIP-234: of a block that has left the chain.
    if (error && error.message !== 'unknown block') failures.push(`${method}: ${error.message}`)
    for (const one of [result].flat()) {
      if (!one) continue
      const hash = one.blockHash ?? one.hash
      see(sent, Number(one.blockNumber ?? one.number), hash, `${method} ${JSON.stringify(params)}`)
      for (const transaction of Array.isArray(one.transactions) ? one.transactions : [])
        if (transaction.blockHash && transaction.blockHash !== hash) failures.push('mixed block')
    }
  })
}

// GetTransaction and ListTransactions are operations of wallets on such a network; `two-branches.test.ts` has them.
/** Chain queries, each about a block of this height. */
function queriesOf({ gateway, world, transactionAt, see, failures, queries }: Reading) {
  type Place = { block_number: number; block_hash: string }
  // The branches of the world change faster than those of a chain: a query that was answered from a left branch each time
  // is refused. That it is rare is checked at the end.
  const isAnswer = (status: number, json: { detail?: string }) => {
    queries.all++
    const isRefused = status === 503 && json.detail === 'The chain is being reorganized.'
    if (isRefused) queries.refused++
    return status === 200 || status === 404 || isRefused
  }
  const query = async (operation: string, body: object, sent: number, member: string) => {
    const { status, json, text } = await gateway.call(gateway.tenant.member, `c/${operation}`, body)
    // A transaction or block that is in no block of the branch.
    if (!isAnswer(status, json)) failures.push(`${operation}: ${status} ${text}`)
    const places: Place[] = status === 200 ? [json[member]].flat() : []
    for (const { block_number, block_hash } of places)
      see(sent, block_number, block_hash, `${operation} ${JSON.stringify(body)}`)
  }
  const byTransaction = (operation: string, member: string) => (number: number, sent: number) =>
    query(operation, { transaction_hash: transactionAt(number) }, sent, member)
  return [
    (number: number, sent: number) => query('GetBlock', { block_number: number }, sent, 'block'),
    ...chainQueries.map(({ name, member }) => byTransaction(name, member)),
    async (number: number, sent: number) => {
      const transaction_hash = transactionAt(number)
      const { status, json, text } = await gateway.call(
        gateway.tenant.member,
        'c/ListInternalTransactions',
        { transaction_hash },
      )
      if (!isAnswer(status, json)) failures.push(`trace: ${status} ${text}`)
      for (const { input } of json.internal_transactions ?? [])
        see(sent, world.get(input).number, input, 'ListInternalTransactions')
    },
  ]
}

/** Two WebSocket clients with a subscription of each kind, and two filters of each kind. */
async function openClients(gateway: TestGateway) {
  const url = `${gateway.app.ws_url}/c/mainnet/v1/ws/${gateway.tenant.member.api_key}`
  const sockets = await Promise.all([connect(url), connect(url)])
  const subscribe = (name: string, options?: object) =>
    Promise.all(sockets.map((socket) => socket.subscribe(name, options)))
  const [heads, logs, waiting] = [
    await subscribe('newHeads'),
    await subscribe('logs', {}),
    await subscribe('newPendingTransactions'),
  ]
  const filters = (method: string, params: unknown[] = []) =>
    Promise.all(sockets.map(async () => (await gateway.rpc(method, params)).result as string))
  const [blockFilters, logFilters, waitingFilters] = [
    await filters('eth_newBlockFilter'),
    await filters('eth_newFilter', [{}]),
    await filters('eth_newPendingTransactionFilter'),
  ]
  const polled = new Map<string, unknown[]>(
    [...blockFilters, ...logFilters, ...waitingFilters].map((id) => [id, []]),
  )
  const poll = async () => {
    for (const [id, changes] of polled)
      changes.push(...(await gateway.rpc('eth_getFilterChanges', [id])).result)
  }
  // biome-ignore lint/suspicious/noExplicitAny: what a subscription pushes
  const pushed = (ids: readonly string[]): any[][] =>
    sockets.map((socket, index) => socket.pushes(ids[index] as string))
  const nameOf = (log: { blockHash: string; removed: boolean }) => `${log.blockHash} ${log.removed}`
  const hashes = (index: number): string[] => pushed(heads)[index]!.map(({ hash }) => hash)
  /** What clients of each surface got, of which all must be equal. */
  const surfaces = () => ({
    heads: [...pushed(heads).map((list) => list.map(({ hash }) => hash)), ...of(blockFilters)],
    logs: [
      ...pushed(logs).map((list) => list.map(nameOf)),
      ...of(logFilters).map((list) => (list as Parameters<typeof nameOf>[0][]).map(nameOf)),
    ],
    waiting: [...pushed(waiting), ...of(waitingFilters)],
  })
  const of = (ids: readonly string[]) => ids.map((id) => polled.get(id) as unknown[])

  return {
    logFilters,
    heads: hashes,
    onHead: (listener: (index: number, head: Head) => void) => {
      for (const [index, { ws }] of sockets.entries())
        ws.on('message', (data) => {
          const { subscription, result } = JSON.parse(String(data)).params ?? {}
          if (subscription === heads[index]) listener(index, result)
        })
    },
    areAt: async (hash: string): Promise<boolean> => {
      await poll()
      return surfaces().heads.every((list) => list.at(-1) === hash)
    },
    /** Gives the sequence of heads once all clients of a surface got the same. */
    expectEqual: async (): Promise<string[]> => {
      await waitFor('all logs and waiting transactions', async () => {
        await poll()
        return Object.values(surfaces()).every((lists) =>
          lists.every(({ length }) => length === lists[0]?.length),
        )
      })
      for (const lists of Object.values(surfaces()))
        for (const list of lists) expect(list).toEqual(lists[0])
      return hashes(0)
    },
  }
}

/** Moves the nodes through branches that a seed decides. */
function createForks(options: {
  world: VerifiedWorld
  nodes: [NodeServer, NodeServer]
  first: VerifiedBlock
  below(limit: number): number
}) {
  const { world, nodes, first, below } = options
  const [a, b] = nodes
  const sent: string[] = []
  let tip = first
  /** Those of before are in a final block. */
  const waiting = (head: VerifiedBlock) => sent.slice(-40).filter((hash) => !world.isIn(hash, head))
  const block = (parent: VerifiedBlock) =>
    world.mine(
      parent,
      waiting(parent).filter(() => below(4) === 0),
    )
  const branch = (from: VerifiedBlock, length: number) => {
    let at = from
    for (let left = length; left > 0; left--) at = block(at)
    return at
  }
  const ancestor = (from: VerifiedBlock, depth: number) => {
    let at = from
    for (let left = depth; left > 0 && at.number > first.number; left--) at = world.get(at.parent)
    return at
  }
  const show = (node: NodeServer, head: VerifiedBlock, silently = false) => {
    const before = node.node.head as VerifiedBlock
    node.show(head, silently)
    // As geth does with transactions of blocks that left its chain.
    for (const hash of sent.slice(-40))
      if (world.isIn(hash, before) && !world.isIn(hash, head)) node.announce(hash)
  }
  const go = async (head: VerifiedBlock) => {
    tip = head
    for (const node of below(2) === 0 ? [a, b] : [b, a]) {
      // A silent node is found out by its answers, or by the next probe.
      show(node, head, below(3) === 0)
      await pause(below(3) * 15)
    }
  }
  const step = async () => {
    const kind = below(5)
    if (kind === 0) await go(branch(tip, 1 + below(3)))
    else if (kind === 1) {
      const depth = 1 + below(4)
      await go(branch(ancestor(tip, depth), depth + 1 + below(2)))
    } else if (kind === 2) {
      const depth = 1 + below(3)
      await go(branch(ancestor(tip, depth), depth))
    } else if (kind === 3) {
      // Each node grows a branch of its own, and they differ for a while.
      const from = ancestor(tip, below(3))
      let [left, right] = [from, from]
      for (let length = tip.number - from.number + 1 + below(3); length > 0; length--) {
        left = block(left)
        right = block(right)
        show(a, left)
        show(b, right)
        await pause(20 + below(60))
      }
      await go(block(below(2) === 0 ? left : right))
    } else {
      // One node alone on a shorter branch, then back.
      show(b, branch(ancestor(tip, 2), 1), below(2) === 0)
      await pause(30 + below(60))
      await go(branch(tip, 1))
    }
  }
  return {
    tip: () => tip,
    /** The transactions that are in no block of the branch, by nonce. */
    waiting: () => waiting(tip),
    /** One script. It ends with a block of its own, so that all clients can reach it. */
    run: async () => {
      const hash = world.send()
      sent.push(hash)
      for (const node of nodes) node.announce(hash)
      for (let steps = 2 + below(4); steps > 0; steps--) {
        await step()
        await pause(20 + below(80))
      }
      await go(branch(tip, 1))
    },
  }
}

/** Lists of the wallet that mix branches, or show a block too long after it has left the chain. */
function staleLists(
  listed: readonly Listed[],
  announced: readonly { at: number; number: number; hash: string }[],
): string[] {
  const left = new Map<string, number>()
  const canonical = new Map<number, string>()
  for (const { at, number, hash } of announced) {
    for (const [height, other] of canonical)
      if (height >= number) {
        left.set(other, at)
        canonical.delete(height)
      }
    canonical.set(number, hash)
    left.delete(hash)
  }
  return listed.flatMap(({ sentAt, blocks }) => {
    const sorted = blocks.toSorted((one, two) => two.number - one.number)
    const mixed = sorted.flatMap((block, index) => {
      const child = sorted[index - 1]
      if (!child || (child.number === block.number + 1 && child.parent === block.hash)) return []
      return [`${child.number} ${child.hash} is listed above ${block.number} ${block.hash}`]
    })
    const late = blocks.flatMap(({ number, hash }) => {
      const lateMs = sentAt - (left.get(hash) ?? sentAt)
      return lateMs > trackerMs ? [`${number} ${hash} is listed ${lateMs} ms after it left`] : []
    })
    return [...mixed, ...late]
  })
}
