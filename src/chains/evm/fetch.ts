import {
  type AssetKey,
  BlockMissingError,
  type ChainBlock,
  ChainUnavailableError,
} from '../chain.ts'
import { createBlock } from './block.ts'
import { readBlock } from './header.ts'
import type { Nodes } from './nodes.ts'
import { type RawBlock, type RawReceipt, toQuantity } from './raw.ts'
import { type Proof, provesReceipts } from './receipts.ts'
import type { Answered, Rpc } from './rpc.ts'
import { type InternalTransfer, readFrames, readTraces } from './traces.ts'

/** Fetches whole blocks. */
export type FetchBlock = (number: number, signal: AbortSignal) => Promise<ChainBlock>

type Tools = {
  rpc: Rpc
  pool: Nodes
  native: AssetKey
  proof: Proof
  /** Waits until it is known what the nodes can do. */
  explored(signal: AbortSignal): Promise<void>
}

/** Makes the function that fetches a block with its receipts and traces, all of them proved. */
export function createFetchBlock(tools: Tools): FetchBlock {
  return async (number, signal) => {
    await tools.explored(signal)
    const block = await fetchRaw(tools, number, signal)
    const some = block.transactions.length > 0
    const [receipts, internal] = await Promise.all([
      some ? fetchReceipts(tools, block, signal) : [],
      mayMoveInside(block) ? fetchInternal(tools, block, signal) : [],
    ])
    return createBlock({ block, receipts, internal, native: tools.native })
  }
}

// A plain payment costs exactly this, and runs no code.
const mayMoveInside = ({ transactions, gasUsed }: RawBlock): boolean =>
  transactions.length > 0 && BigInt(String(gasUsed)) !== BigInt(21_000 * transactions.length)

/** A node that has not reached the block would only say that it does not know it. */
const reached = (pool: Nodes, number: number): { minBlock?: number } => {
  const best = pool.head()?.number
  return best === undefined ? {} : { minBlock: Math.min(number, best) }
}

async function fetchRaw({ rpc, pool, proof }: Tools, number: number, signal: AbortSignal) {
  let isNull = false
  const answered = await rpc.try({
    method: '_getBlockByNumber',
    params: [toQuantity(number), true],
    ...reached(pool, number),
    signal,
    accept: (result) => {
      isNull = result === null
      return readBlock(result, { number, isProved: proof === 'root' })
    },
  })
  return take(answered, `block ${number}`, isNull)
}

/** The answer; throws what says whether asking again can help. */
function take<answer>(answered: Answered<answer>, what: string, isNull = false): answer {
  if (answered.kind === 'answer') return answered.answer
  if (answered.kind === 'error' ? isPruned(answered) : isNull)
    throw new BlockMissingError(`no node has ${what}`)
  const reason = answered.kind === 'error' ? answered.message : 'no answer can be trusted'
  throw new ChainUnavailableError(`${what}: ${reason}`)
}

const isPruned = ({ code, message }: { code: number; message: string }): boolean =>
  code === 4444 ||
  /prun|missing trie node|histor|ancient|not found|not available|unavailable|out ?of ?range|required state/i.test(
    message,
  )

async function fetchReceipts(
  { rpc, pool, proof }: Tools,
  block: RawBlock,
  signal: AbortSignal,
): Promise<RawReceipt[]> {
  const number = Number(block.number)
  if (pool.can('block_receipts')) {
    let isNull = false
    const answered = await rpc.try({
      method: '_getBlockReceipts',
      params: [block.hash],
      needs: 'block_receipts',
      ...reached(pool, number),
      signal,
      accept: (result) => {
        isNull = result === null
        const receipts = result as RawReceipt[]
        return Array.isArray(result) && provesReceipts(block, receipts, proof)
          ? receipts
          : undefined
      },
    })
    return take(answered, `the receipts of block ${number}`, isNull)
  }
  const receipts = await Promise.all(
    block.transactions.map(({ hash }) =>
      rpc.ask({
        method: '_getTransactionReceipt',
        params: [hash],
        ...reached(pool, number),
        signal,
        accept: (result) => {
          const receipt = result as RawReceipt | null
          return receipt?.blockHash === block.hash ? receipt : undefined
        },
      }),
    ),
  )
  if (!provesReceipts(block, receipts, proof))
    throw new ChainUnavailableError(`the receipts of block ${number} are not those of its header`)
  return receipts
}

/** Undefined where no node can trace, or none has the state for it any more. */
async function fetchInternal(
  { rpc, pool }: Tools,
  { hash, number, transactions }: RawBlock,
  signal: AbortSignal,
): Promise<InternalTransfer[][] | undefined> {
  const hashes = transactions.map((transaction) => transaction.hash)
  const at = reached(pool, Number(number))
  const ways = [
    {
      method: 'debug_traceBlockByHash',
      params: [hash, { tracer: 'callTracer' }],
      needs: 'debug_trace' as const,
      accept: (result: unknown) => readFrames(result, hashes),
    },
    {
      method: 'trace_block',
      params: [number],
      needs: 'parity_trace' as const,
      accept: (result: unknown) => readTraces(result, { hash, hashes }),
    },
  ]
  let failure: unknown
  for (const way of ways) {
    if (!pool.can(way.needs)) continue
    try {
      const answered = await rpc.try({ ...way, ...at, signal })
      if (answered.kind === 'answer') return answered.answer
      if (answered.kind === 'error' && isPruned(answered)) continue
      failure = new ChainUnavailableError(`block ${Number(number)} cannot be traced now`)
    } catch (error) {
      signal.throwIfAborted()
      failure = error
    }
  }
  if (failure) throw failure
  return undefined
}
