import type { NodeStatus } from '../../nodes/status.ts'
import { isFinal } from '../pool/judge.ts'
import { meaningOf, readError } from '../pool/node-error.ts'
import { type EvmNodes, isPruned } from '../pool/nodes.ts'
import { worthOf } from '../pool/pool-call.ts'
import type { Capability, Head, PoolOutcome, PoolRequest, RpcReply } from '../pool/pool-types.ts'
import type { StubBlock } from './stub-chain.ts'

/** A node of a stub pool: its blocks, and what it says in place of the truth. */
export type StubNode = {
  blocks: readonly StubBlock[]
  /** Given the right result; undefined keeps it. */
  lie?(method: string, result: unknown, params: readonly unknown[]): unknown
  /** Answers of methods that do not follow from blocks. */
  answer?(method: string, params: readonly unknown[]): unknown
  /** The error that it gives instead of an answer. */
  refuse?(method: string, params: readonly unknown[]): object | undefined
}

/** A pool whose nodes are tried in order, as the real one does with useless answers. */
export type StubPool = EvmNodes & {
  nodes: StubNode[]
  methods: string[]
  /** Announces the newest block of the first node. */
  push(): void
  setHead(number: number): void
  /** Removes all nodes with a capability. */
  setAway(isAway: boolean): void
}

/** Makes a pool of nodes without a network. */
export function createStubPool(
  nodes: StubNode[],
  capabilities: readonly Capability[] = ['block_receipts'],
): StubPool {
  const listeners = new Set<(head: Head, upstream: string) => void>()
  const methods: string[] = []
  let claimed: number | undefined
  let away = false
  const headOf = ({ blocks }: StubNode): Head => {
    const { block, number } = blocks.at(-1)!
    return { number, hash: block.hash, parent_hash: block.parentHash, timestamp: 0 }
  }
  const best = (): Head => {
    const highest = nodes.map(headOf).reduce((one, two) => (two.number > one.number ? two : one))
    return claimed === undefined ? highest : { ...highest, number: claimed }
  }
  const truth = (node: StubNode, method: string, params: readonly unknown[]): unknown => {
    const { blocks } = node
    const byHash = blocks.find(({ block }) => block.hash === params[0])
    if (method === 'eth_getBlockByNumber') {
      const number = params[0] === 'latest' ? blocks.at(-1)!.number : Number(params[0])
      return blocks.find((block) => block.number === number)?.block ?? null
    }
    if (method === 'eth_getBlockReceipts') return byHash?.receipts ?? null
    if (method === 'eth_getTransactionReceipt')
      return (
        blocks
          .flatMap(({ receipts }) => receipts)
          .find(({ transactionHash }) => transactionHash === params[0]) ?? null
      )
    if (method === 'eth_chainId') return '0x1'
    return node.answer?.(method, params) ?? null
  }
  const request = async (asked: PoolRequest): Promise<PoolOutcome> => {
    const { method, minBlock, signal, isUseless, avoid } = asked
    if (signal?.aborted) return { failure: 'ABORTED' }
    methods.push(method)
    await new Promise((resolve) => setImmediate(resolve))
    const params = JSON.parse(asked.params)
    let last = { failure: 'NO_UPSTREAM' } as PoolOutcome
    let worth = -1
    let isDisputed = false
    const keep = (reply: RpcReply): void => {
      const meaning = reply.ok ? 'answer' : meaningOf(reply.error, asked.params)
      isDisputed ||= reply.ok || !isPruned(readError(reply.error))
      if (worthOf(reply, meaning) <= worth) return
      worth = worthOf(reply, meaning)
      last = reply
    }
    for (const [index, node] of nodes.entries()) {
      const name = `node ${index}`
      if (avoid?.includes(name)) continue
      if (minBlock !== undefined && node.blocks.at(-1)!.number < minBlock && claimed === undefined)
        continue
      const error = node.refuse?.(method, params)
      if (error) {
        const refused: RpcReply = { ok: false, error: JSON.stringify(error) }
        if (isFinal({ method, params: asked.params }, refused) && !isUseless?.(refused, name))
          return refused
        keep(refused)
        continue
      }
      const right = truth(node, method, params)
      const said = node.lie?.(method, structuredClone(right), params)
      const reply = { ok: true as const, result: JSON.stringify(said === undefined ? right : said) }
      if (!isUseless?.(reply, name)) return reply
      keep(reply)
    }
    if (!isDisputed || !('error' in last) || !isPruned(readError(last.error))) return last
    return { ...last, isDisputed: true }
  }
  return {
    nodes,
    methods,
    request,
    broadcast: async () => ({ failure: 'NO_UPSTREAM' }),
    chainId: () => 1,
    head: best,
    can: (capability) => !away && capabilities.includes(capability),
    has: (capability) => capabilities.includes(capability),
    onHead: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    status: () =>
      nodes.map((_, index) => ({ name: `node ${index}`, capabilities }) as unknown as NodeStatus),
    push: () => {
      for (const listener of listeners) listener(best(), 'stub')
    },
    setHead: (number) => {
      claimed = number
    },
    setAway: (isAway) => {
      away = isAway
    },
  }
}
