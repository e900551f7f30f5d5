import { hash as digest } from 'node:crypto'
import type {
  Head,
  Pool,
  PoolOutcome,
  PoolRequest,
  RpcReply,
} from '../../chains/evm/pool/pool-types.ts'

/** A log that a test put into a block. */
export type WorldLog = { address: string; topics: string[] }

/** A block of the test's chain. */
export type WorldBlock = {
  number: number
  hash: string
  parent: string
  logs: WorldLog[]
  bloom: string
  transactions: string[]
}

/** A node of the test's network: what it shows, and what it still knows. */
export type WorldNode = {
  name: string
  head: WorldBlock
  isLive: boolean
  /** Whether it discards blocks that leave its chain, as anvil does. */
  forgets: boolean
  /** Answers that fail before the next one is right. */
  failures: number
  requests: PoolRequest[]
}

/** Nodes and blocks that a test decides; every request is served by a node that can. */
export type World = {
  pool: Pool
  nodes: WorldNode[]
  genesis: WorldBlock
  /** Makes a block on another one. */
  mine(parent: WorldBlock, logs?: WorldLog[], transactions?: string[]): WorldBlock
  get(hash: string): WorldBlock
  /** A node goes to a head and announces that one only, as geth does. */
  show(node: WorldNode, head: WorldBlock): void
  announce(transaction: string): void
  /** What a node says to a call. */
  answer(node: WorldNode, call: Pick<PoolRequest, 'method' | 'params'>): RpcReply
  isListeningToPending(): boolean
}

const bytes32 = (value: number) => `0x${value.toString(16).padStart(64, '0')}`

/** Where the logs of a chain come from: transactions, or blocks, whose headers may not know of them. */
export type LogOrigin = 'transactions' | 'blocks' | 'blocks beside the bloom'

/** For tests. */
export function createWorld({
  nodes: count = 1,
  forgets = false,
  origin = 'transactions',
}: {
  nodes?: number
  forgets?: boolean
  origin?: LogOrigin
} = {}): World {
  const blocks = new Map<string, WorldBlock>()
  const listeners = new Set<(head: Head, upstream: string) => void>()
  const pendingListeners = new Set<(hash: string) => void>()
  let made = 0

  const mine: World['mine'] = (parent, logs = [], transactions = []) => {
    const hash = bytes32(0xb10c_0000 + made++)
    const own = logs.length > 0 && origin === 'transactions' ? [`${hash.slice(0, -1)}f`] : []
    const block: WorldBlock = {
      number: parent.number + 1,
      hash,
      parent: parent.hash,
      logs,
      bloom: bloomOf(origin === 'blocks beside the bloom' ? [] : logs),
      transactions: [...transactions, ...own],
    }
    blocks.set(hash, block)
    return block
  }
  const first = { number: 99, hash: bytes32(1), parent: '', logs: [], bloom: '', transactions: [] }
  const genesis = mine(first)
  const get = (hash: string) => blocks.get(hash) as WorldBlock

  const isAncestor = (hash: string, head: WorldBlock): boolean => {
    for (let block: WorldBlock | undefined = head; block; block = blocks.get(block.parent))
      if (block.hash === hash) return true
    return false
  }
  const blockAt = (node: WorldNode, number: number): WorldBlock | undefined => {
    let block: WorldBlock | undefined = node.head
    while (block && block.number > number) block = blocks.get(block.parent)
    return block?.number === number ? block : undefined
  }
  const knows = (node: WorldNode, hash: string) =>
    blocks.has(hash) && (node.forgets ? isAncestor(hash, node.head) : true)

  const reply: World['answer'] = (node, { method, params }) => {
    const [first, second] = JSON.parse(params) as [string | WorldRange, unknown]
    if (method === 'eth_syncing') return { ok: true, result: 'false' }
    if (!/^eth_get(Block|Logs|Transaction)/.test(method))
      return { ok: false, error: '{"code":-32601,"message":"unknown method"}' }
    if (method === 'eth_getBlockByNumber') {
      const block = first === 'latest' ? node.head : blockAt(node, Number(first))
      return { ok: true, result: block ? blockText(block, second === true) : 'null' }
    }
    if (method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash') {
      let block: WorldBlock | undefined = node.head
      while (block && !block.transactions.includes(first as string))
        block = blocks.get(block.parent)
      if (!block) return { ok: true, result: 'null' }
      const isReceipt = method === 'eth_getTransactionReceipt'
      const found = isReceipt
        ? receiptOf(block, first as string)
        : transactionOf(block, first as string)
      return { ok: true, result: JSON.stringify(found) }
    }
    if (method === 'eth_getBlockReceipts') {
      const block = blockAt(node, Number(first))
      const receipts = block?.transactions.map((hash) => receiptOf(block, hash)) ?? null
      return { ok: true, result: JSON.stringify(receipts) }
    }
    if (method === 'eth_getBlockByHash') {
      const block = knows(node, first as string) ? get(first as string) : undefined
      return { ok: true, result: block ? blockText(block, second === true) : 'null' }
    }
    const { blockHash = '', fromBlock, toBlock } = first as WorldRange
    if (fromBlock !== undefined) {
      const found: object[] = []
      for (let number = Number(fromBlock); number <= Number(toBlock); number++) {
        const block = blockAt(node, number)
        if (block) found.push(...logsOf(block))
      }
      return { ok: true, result: JSON.stringify(found) }
    }
    if (!knows(node, blockHash))
      return { ok: false, error: '{"code":-32000,"message":"unknown block"}' }
    return { ok: true, result: JSON.stringify(logsOf(get(blockHash))) }
  }

  const request = async (call: PoolRequest): Promise<PoolOutcome> => {
    await Promise.resolve()
    let outcome: PoolOutcome = { failure: 'NO_UPSTREAM' }
    for (const node of nodes) {
      if (!node.isLive || node.head.number < (call.minBlock ?? 0)) continue
      node.requests.push(call)
      if (node.failures > 0) {
        node.failures--
        continue
      }
      outcome = reply(node, call)
      if (!call.isUseless?.(outcome, 'stub')) break
    }
    return outcome
  }

  const nodes: WorldNode[] = Array.from({ length: count }, (_, index) => ({
    name: `node-${index}`,
    head: genesis,
    isLive: true,
    forgets,
    failures: 0,
    requests: [],
  }))
  let best = genesis

  return {
    nodes,
    genesis,
    mine,
    get,
    answer: reply,
    show(node, head) {
      const isNew = node.head !== head
      node.head = head
      if (head.number >= best.number || nodes.length === 1) best = head
      if (isNew && node.isLive) for (const notify of listeners) notify(headOf(head), node.name)
    },
    announce(transaction) {
      for (const notify of pendingListeners) notify(transaction)
    },
    isListeningToPending: () => pendingListeners.size > 0,
    pool: {
      request,
      send: (call, done) => void request(call).then(done),
      broadcast: async () => ({ failure: 'NO_UPSTREAM' }),
      chainId: () => 1,
      head: () => headOf(best),
      can: () => false,
      has: () => false,
      onHead: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      look: async () => {},
      pendingSources: () => [],
      onPending: (listener) => {
        pendingListeners.add(listener)
        return () => pendingListeners.delete(listener)
      },
      pendingBegun: async () => {},
      status: () =>
        nodes.map(({ name, isLive }) => ({
          name,
          state: isLive ? 'healthy' : 'unreachable',
        })) as never,
      stop: async () => {},
    },
  }
}

const headOf = ({ number, hash, parent }: WorldBlock): Head => ({
  number,
  hash,
  parent_hash: parent,
  timestamp: number,
})

/** The logs of a block as a node gives them. */
export const logsOf = ({ hash, number, logs, transactions }: WorldBlock) =>
  logs.map(({ address, topics }, index) => ({
    address,
    topics,
    data: '0x',
    blockHash: hash,
    blockNumber: `0x${number.toString(16)}`,
    transactionHash: transactions.at(-1) ?? hash,
    transactionIndex: '0x0',
    logIndex: `0x${index.toString(16)}`,
    removed: false,
  }))

type WorldRange = { blockHash?: string; fromBlock?: string; toBlock?: string }

const receiptOf = ({ number, hash }: WorldBlock, transactionHash: string) => ({
  transactionHash,
  blockHash: hash,
  blockNumber: `0x${number.toString(16)}`,
  contractAddress: null,
  status: '0x1',
})

const transactionOf = ({ number, hash: blockHash }: WorldBlock, hash: string) => ({
  hash,
  blockHash,
  blockNumber: `0x${number.toString(16)}`,
})

const blockText = (block: WorldBlock, isFull = false): string =>
  JSON.stringify({
    number: `0x${block.number.toString(16)}`,
    hash: block.hash,
    parentHash: block.parent,
    timestamp: `0x${block.number.toString(16)}`,
    logsBloom: block.bloom,
    transactions: isFull
      ? block.transactions.map((hash) => transactionOf(block, hash))
      : block.transactions,
    uncles: [],
  })

/** The bloom of a header, item by item. */
function bloomOf(logs: readonly WorldLog[]): string {
  const bits = Buffer.alloc(256)
  for (const item of logs.flatMap(({ address, topics }) => [address, ...topics])) {
    const hashed = digest('keccak-256', Buffer.from(item.slice(2), 'hex'), 'buffer')
    for (const at of [0, 2, 4]) {
      const bit = hashed.readUInt16BE(at) % 2048
      bits[255 - Math.floor(bit / 8)]! |= 1 << (bit % 8)
    }
  }
  return `0x${bits.toString('hex')}`
}
