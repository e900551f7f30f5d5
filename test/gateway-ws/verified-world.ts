import type { RawTransaction } from '../../src/chains/evm/codec/raw.ts'
import type { PoolRequest, RpcReply } from '../../src/chains/evm/pool/pool-types.ts'
import {
  addressOf,
  type StubBlock,
  type StubTransaction,
  stubBlock,
  wordOf,
} from '../../src/chains/evm/testing/stub-chain.ts'
import type { WorldBlock, WorldNode } from '../../src/gateway/testing/feed-world.ts'

/** A block whose hash, roots and bloom are right, so that the tracker takes it. */
export type VerifiedBlock = WorldBlock & {
  made: StubBlock
  /** What the tracked address has after it. */
  balance: bigint
}

/** The account that every block pays. */
export const trackedAddress = addressOf(0x7ac4ed)
/** The account whose transactions wait for a block. */
export const waitingSender = addressOf(0x3a17)

/** Nodes and blocks that a test decides; the blocks are valid ones. */
export type VerifiedWorld = {
  nodes: WorldNode[]
  genesis: VerifiedBlock
  /** Makes a block that includes these waiting transactions. */
  mine(parent: VerifiedBlock, waiting?: readonly string[]): VerifiedBlock
  get(hash: string): VerifiedBlock
  /** The block of the transaction that no other block has. */
  blockOf(transaction: string): VerifiedBlock | undefined
  /** The transaction that every block of a height has, and then those that one of them has. */
  transactionsAt(number: number): readonly string[]
  /** Makes a transaction that every node holds until it is in a block of its branch. */
  send(): string
  isIn(transaction: string, head: VerifiedBlock): boolean
  show(node: WorldNode, head: WorldBlock): void
  answer(node: WorldNode, call: Pick<PoolRequest, 'method' | 'params'>): RpcReply
}

const feeFields = {
  ...{ gas: '0x5208', gasPrice: '0x2', maxFeePerGas: '0x2', maxPriorityFeePerGas: '0x1' },
  ...{ chainId: '0x1', accessList: [], yParity: '0x0', v: '0x0' },
}
const quantity = (number: number | bigint) => `0x${number.toString(16)}`
const found = (value: unknown): RpcReply => ({ ok: true, result: JSON.stringify(value ?? null) })
const failed = (code: number, message: string): RpcReply => ({
  ok: false,
  error: JSON.stringify({ code, message }),
})

/** For tests. */
export function createVerifiedWorld(count: number): VerifiedWorld {
  const blocks = new Map<string, VerifiedBlock>()
  const common = new Map<number, string[]>()
  const own = new Map<string, VerifiedBlock>()
  const waiting = new Map<string, { raw: RawTransaction; stub: StubTransaction }>()
  let made = 0

  const add = (stub: StubBlock, balance: bigint): VerifiedBlock => {
    const { block: raw, number } = stub
    const transactions = raw.transactions.map(({ hash }) => hash)
    const block: VerifiedBlock = {
      ...{ number, hash: raw.hash, parent: raw.parentHash, bloom: raw.logsBloom },
      ...{ logs: [], transactions, made: stub, balance },
    }
    blocks.set(raw.hash, block)
    const [shared, single] = transactions
    if (shared && single) {
      common.set(number, [...(common.get(number) ?? [shared]), single])
      own.set(single, block)
    }
    return block
  }

  const mine: VerifiedWorld['mine'] = (parent, included = []) => {
    const number = parent.number + 1
    const log = { address: addressOf(number), topics: [wordOf(number)], data: '0x' }
    const value = BigInt(++made)
    const pay = { from: addressOf(0x9a1d), to: trackedAddress, transaction: feeFields }
    const stub = stubBlock(
      [
        { ...pay, value: 1n, logs: [log] },
        { ...pay, value },
        ...included.map((hash) => waiting.get(hash)!.stub),
      ],
      { parent: parent.made, salt: quantity(made) },
    )
    return add(stub, parent.balance + 1n + value)
  }

  const send = () => {
    const nonce = quantity(1_000_000 + waiting.size)
    const transaction = { ...feeFields, nonce }
    const stub = { from: waitingSender, to: addressOf(3), value: 1n, transaction }
    const [raw] = stubBlock([stub]).block.transactions as [RawTransaction]
    waiting.set(raw.hash, { raw, stub })
    return raw.hash
  }

  const get = (hash: string) => blocks.get(hash) as VerifiedBlock
  const genesis = add(stubBlock(), 0n)
  const headOf = (node: WorldNode) => node.head as VerifiedBlock

  const findIn = (head: VerifiedBlock, isIt: (block: VerifiedBlock) => boolean) => {
    let block: VerifiedBlock | undefined = head
    while (block && !isIt(block)) block = blocks.get(block.parent)
    return block
  }
  const blockAt = (node: WorldNode, number: number) => {
    const block = findIn(headOf(node), (one) => one.number <= number)
    return block?.number === number ? block : undefined
  }
  const transactionsBlock = (transaction: string, head: VerifiedBlock) =>
    findIn(head, ({ transactions }) => transactions.includes(transaction))
  /** By number, tag, hash, or an object with the hash. */
  const blockBy = (node: WorldNode, by: unknown): VerifiedBlock | undefined => {
    const text = typeof by === 'object' ? (by as { blockHash: string }).blockHash : String(by)
    if (text === 'latest') return headOf(node)
    return text.length === 66 ? blocks.get(text) : blockAt(node, Number(text))
  }

  const placeOf = ({ hash, number }: VerifiedBlock) => ({
    blockHash: hash,
    blockNumber: quantity(number),
  })
  const transactionsOf = (block: VerifiedBlock) =>
    block.made.block.transactions.map((transaction, index) => ({
      ...transaction,
      ...placeOf(block),
      transactionIndex: quantity(index),
    }))
  const receiptsOf = (block: VerifiedBlock) => {
    let logs = 0
    return block.made.receipts.map((receipt, index) => {
      const { from, to } = block.made.block.transactions[index] as RawTransaction
      const place = { ...placeOf(block), transactionIndex: quantity(index) }
      return {
        ...{ ...receipt, ...place, from, to },
        logs: receipt.logs.map((log) => ({
          ...{ ...log, ...place, transactionHash: receipt.transactionHash },
          ...{ logIndex: quantity(logs++), removed: false },
        })),
      }
    })
  }
  const logsOf = (block: VerifiedBlock) => receiptsOf(block).flatMap(({ logs }) => logs)
  const textOf = (block: VerifiedBlock, isFull: boolean) => ({
    ...{ ...block.made.block, uncles: [], size: '0x1' },
    transactions: isFull ? transactionsOf(block) : block.transactions,
  })
  /** One call inside, which names the block in its input. */
  const traceOf = ({ hash }: VerifiedBlock) => {
    const call = { type: 'CALL', from: addressOf(5), to: addressOf(6), value: '0x0', gas: '0x1' }
    const rest = { gasUsed: '0x1', input: hash, output: '0x' }
    return { ...call, ...rest, calls: [{ ...call, ...rest }] }
  }

  const logsIn = (node: WorldNode, range: Record<string, string>): RpcReply => {
    const { blockHash, fromBlock, toBlock } = range
    if (blockHash !== undefined) {
      const block = blocks.get(blockHash)
      return block ? found(logsOf(block)) : failed(-32000, 'unknown block')
    }
    const logs: object[] = []
    for (let number = Number(fromBlock); number <= Number(toBlock); number++) {
      const block = blockAt(node, number)
      if (block) logs.push(...logsOf(block))
    }
    return found(logs)
  }

  const answer: VerifiedWorld['answer'] = (node, { method, params }) => {
    const [first, second] = JSON.parse(params) as [unknown, unknown]
    if (method === 'eth_getLogs') return logsIn(node, first as Record<string, string>)
    if (/^eth_getBlockBy/.test(method)) {
      const block = blockBy(node, first)
      return found(block && textOf(block, second === true))
    }
    if (method === 'eth_getBlockReceipts') {
      const block = blockBy(node, first)
      return found(block && receiptsOf(block))
    }
    if (method === 'eth_getBalance') {
      const block = blockBy(node, second)
      if (!block) return failed(-32000, 'header not found')
      return found(first === trackedAddress ? quantity(block.balance) : '0x0')
    }
    const hash = String(first)
    const block = transactionsBlock(hash, headOf(node))
    const isIt = (one: { hash?: string; transactionHash?: string }) =>
      (one.hash ?? one.transactionHash) === hash
    if (method === 'eth_getTransactionReceipt') return found(block && receiptsOf(block).find(isIt))
    if (method === 'eth_getTransactionByHash') {
      const raw = waiting.get(hash)?.raw
      const pending = raw && { ...raw, blockHash: null, blockNumber: null, transactionIndex: null }
      return found(block ? transactionsOf(block).find(isIt) : pending)
    }
    if (method === 'debug_traceTransaction')
      return block ? found(traceOf(block)) : failed(-32000, 'transaction not found')
    return failed(-32601, 'unknown method')
  }

  return {
    nodes: Array.from({ length: count }, (_, index) => ({
      ...{ name: `node-${index}`, head: genesis, isLive: true, forgets: false },
      ...{ failures: 0, requests: [] },
    })),
    ...{ genesis, mine, get, send, answer },
    blockOf: (transaction) => own.get(transaction),
    transactionsAt: (number) => common.get(number) ?? [],
    isIn: (transaction, head) => transactionsBlock(transaction, head) !== undefined,
    show: (node, head) => {
      node.head = head
    },
  }
}
