import { toQuantity } from '../../src/chains/evm/codec/raw.ts'
import { transferTopic } from '../../src/chains/evm/codec/topics.ts'
import type { EvmNodes } from '../../src/chains/evm/pool/nodes.ts'
import type { Head, PoolRequest, RpcReply } from '../../src/chains/evm/pool/pool-types.ts'
import { addressOf, stubBlock, wordOf } from '../../src/chains/evm/testing/stub-chain.ts'

/** A chain as nodes would have sent it: the text of every answer, kept in memory. */
export type RecordedChain = {
  pool: EvmNodes
  contracts: string[]
  /** Shows the nodes' next blocks, up to this number. */
  advance(number: number): void
  /** Makes so many blocks more, and forgets those before a number. */
  grow(blocks: number, before?: number): void
  /** The number of the last block that was made. */
  top(): number
  /** The result of a call, as JSON text. */
  answer(method: string, params: string): string
}

type Recorded = { head: Head; block: string; receipts: string }

/** Makes blocks of ERC-20 transfers to tracked addresses, by untracked senders. */
export function recordChain(options: {
  blocks: number
  transfers: number
  /** The receiver of each transfer, by its number over all blocks. */
  receiver(index: number): number
}): RecordedChain {
  const { blocks, transfers, receiver } = options
  const contracts = Array.from({ length: 5 }, (_, at) => addressOf(0xc0ffee00 + at))
  const recorded = new Map<number, Recorded>()
  const numberOf = new Map<string, number>()
  let parent: ReturnType<typeof stubBlock> | undefined
  let made = -1
  let first = 0
  const grow = (count: number, before = 0): void => {
    for (const end = made + count; made < end; ) {
      const number = ++made
      const block = stubBlock(
        number === 0 ? [] : Array.from({ length: transfers }, (_, at) => transfer(number, at)),
        parent && { parent },
      )
      const one = record(block)
      recorded.set(number, one)
      numberOf.set(one.head.hash, number)
      parent = block
    }
    for (; first < before; first++) {
      numberOf.delete(recorded.get(first)!.head.hash)
      recorded.delete(first)
    }
  }
  grow(blocks + 1)
  let shown = 0

  function transfer(number: number, at: number) {
    const from = addressOf(0x5000_0000_0000 + ((number * 7919 + at * 31) % 200_000))
    const to = addressOf(receiver((number - 1) * transfers + at))
    const contract = contracts[at % contracts.length]!
    const value = wordOf(BigInt(number) * 1_000_000_000n + BigInt(at + 1))
    return {
      from,
      to: contract,
      input: `0xa9059cbb${wordOf(to).slice(2)}${value.slice(2)}`,
      logs: [{ address: contract, topics: [transferTopic, wordOf(from), wordOf(to)], data: value }],
      transaction: {
        chainId: '0x1',
        gas: toQuantity(90_000),
        maxFeePerGas: '0x2540be400',
        maxPriorityFeePerGas: '0x3b9aca00',
        accessList: [],
        yParity: '0x1',
        v: '0x1',
        r: wordOf(BigInt(`0x${'7a'.repeat(31)}${(at % 256).toString(16).padStart(2, '0')}`)),
        s: wordOf(BigInt(`0x3${'5c'.repeat(31)}`)),
      },
    }
  }

  const answer = (method: string, text: string): string => {
    // The node's own work is not what is measured: it does not read calls of 100 KiB.
    if (method === 'eth_call') return callAnswer(text.slice(text.indexOf(dataMember)))
    const params = JSON.parse(text)
    switch (method) {
      case 'eth_getBlockByNumber': {
        const number = params[0] === 'latest' ? shown : Number(params[0])
        return (number <= shown && recorded.get(number)?.block) || 'null'
      }
      case 'eth_getBlockByHash':
        return recorded.get(numberOf.get(params[0])!)?.block ?? 'null'
      case 'eth_getBlockReceipts':
        return recorded.get(numberOf.get(params[0])!)?.receipts ?? 'null'
      case 'eth_blockNumber':
        return `"${toQuantity(shown)}"`
      case 'eth_chainId':
        return '"0x1"'
      default:
        return '"0x0"'
    }
  }
  const listeners = new Set<(head: Head, upstream: string) => void>()
  const pool: EvmNodes = {
    broadcast: async () => ({ failure: 'NO_UPSTREAM' as const }),
    chainId: () => 1,
    head: () => recorded.get(shown)!.head,
    can: (capability) => capability === 'block_receipts',
    has: (capability) => capability === 'block_receipts',
    onHead: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    status: () => [],
    request: async ({ method, params, isUseless }: PoolRequest) => {
      await new Promise((resolve) => setImmediate(resolve))
      const reply: RpcReply = { ok: true, result: answer(method, params) }
      isUseless?.(reply, 'stub')
      return reply
    },
  }
  return {
    pool,
    contracts,
    advance: (number) => {
      shown = number
      for (const listener of listeners) listener(recorded.get(shown)!.head, 'recorded')
    },
    ...{ grow, answer, top: () => made },
  }
}

/** With all the fields that nodes send, looked at or not. */
function record({ block, receipts, number }: ReturnType<typeof stubBlock>): Recorded {
  const place = (index: number) => ({
    blockHash: block.hash,
    blockNumber: block.number,
    transactionIndex: toQuantity(index),
  })
  const full = receipts.map((receipt, index) => ({
    ...receipt,
    ...place(index),
    from: block.transactions[index]!.from,
    to: block.transactions[index]!.to,
    logs: receipt.logs.map((log) => ({
      ...log,
      ...place(index),
      transactionHash: receipt.transactionHash,
      logIndex: toQuantity(index),
      removed: false,
    })),
  }))
  const transactions = block.transactions.map((one, index) => ({ ...one, ...place(index) }))
  return {
    head: { number, hash: block.hash, parent_hash: block.parentHash, timestamp: 0 },
    block: JSON.stringify({ ...block, transactions }),
    receipts: JSON.stringify(full),
  }
}

// aggregate3((address,bool,bytes)[])
const aggregateSelector = '0x82ad56cb'

const dataMember = '"data":"'
const answers = new Map<number, string>()

/** What Multicall3, or the token itself, would return if every balance were the same. */
function callAnswer(call: string): string {
  const data = call.slice(dataMember.length)
  // The last few of a round are asked for one by one.
  if (!data.startsWith(aggregateSelector))
    return `"0x${(1_000_000).toString(16).padStart(64, '0')}"`
  const count = Number.parseInt(data.slice(10 + 64, 10 + 128), 16)
  let text = answers.get(count)
  if (text === undefined) {
    const digits = (number: number) => number.toString(16).padStart(64, '0')
    const one = [1, 64, 32, 1_000_000].map(digits).join('')
    const offsets = Array.from({ length: count }, (_, at) => digits(count * 32 + at * 128))
    text = `"0x${digits(32)}${digits(count)}${offsets.join('')}${one.repeat(count)}"`
    answers.set(count, text)
  }
  return text
}
