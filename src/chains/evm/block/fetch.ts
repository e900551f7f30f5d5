// Fetches, proves and decodes the blocks of an EVM chain. It uses the pool, `codec` and `chain.ts`. It
// guarantees that a block, its receipts and its transactions match the block hash (unless the operator lowered
// `proof`), and that an answer which fails the check is asked for at another node. Traces cannot be
// proved: they are compared between nodes where their effect is suspicious.

import type { AssetKey } from '../../../contract/records/assets.ts'
import type { Clock } from '../../../lib/clock.ts'
import {
  BlockMissingError,
  type ChainBlock,
  ChainUnavailableError,
  UnreadableError,
} from '../../chain.ts'
import { type ReadBlock, readBlock, whyRefused } from '../codec/header.ts'
import { type RawReceipt, toQuantity } from '../codec/raw.ts'
import { provesReceipts } from '../codec/receipts.ts'
import { loadRecoverSigner, type RecoverSigner } from '../codec/signer.ts'
import { type EvmNodes, isPassing, isPruned, reached } from '../pool/nodes.ts'
import type { Answered, Rpc } from '../pool/rpc.ts'
import { createBlock } from './block.ts'
import { createConfirm } from './confirm.ts'
import { createReadFee } from './fees-elsewhere.ts'
import {
  createFetchInternal,
  type Internal,
  type Tracing,
  type TracingPatience,
} from './internal.ts'
import type { NodeClaimTools } from './node-claims.ts'
import type { ProofRules } from './proof.ts'
import { createTraceElsewhere } from './trace-elsewhere.ts'

/** Fetches whole blocks; without `tracing` it does not wait for unreachable nodes. */
export type FetchBlock = (
  number: number,
  signal: AbortSignal,
  tracing?: Tracing,
) => Promise<ChainBlock>

const withoutRetries: Tracing = { isExpected: false, mayRetry: false }

type Tools = {
  rpc: Rpc
  pool: EvmNodes
  native: AssetKey
  /** The contract through which the coin is also sent as a token. */
  coinContract?: string | undefined
  rules: ProofRules
  /** Whether the senders of transactions are recovered from their signatures. */
  verifySenders: boolean
  clock: Clock
  /** How long traces are waited for. */
  patience?: Partial<TracingPatience> | undefined
  /** Waits until it is known what the nodes can do. */
  explored(signal: AbortSignal): Promise<void>
}

/** Makes the function that fetches a block with its receipts and traces, all of them proved. */
export function createFetchBlock(tools: Tools): FetchBlock {
  const fetchInternal = createFetchInternal(tools)
  const forged = createForgedSenders()
  const claims: NodeClaimTools = {
    verifySenders: tools.verifySenders,
    onForged: forged.add,
    confirm: createConfirm({
      ...tools,
      traceElsewhere: createTraceElsewhere(tools),
      readFee: createReadFee(tools),
    }),
  }
  return async (number, signal, tracing = withoutRetries) => {
    await tools.explored(signal)
    await forged.prepare(number)
    const block = await fetchRaw(tools, forged, number, signal)
    const some = block.transactions.length > 0
    // Where no transaction can have run code there is nothing to trace.
    const inside = block.isPlain
      ? Promise.resolve(nothingInside)
      : fetchInternal(block, tracing, signal)
    const [receipts, internal] = await Promise.all([
      some ? fetchReceiptsBeside(tools, block, inside, signal) : [],
      inside,
    ])
    const { native, coinContract } = tools
    return createBlock({ block, receipts, internal, native, coinContract, claims })
  }
}

const nothingInside: Internal = { transfers: [] }

async function fetchRaw(
  { rpc, pool, rules }: Tools,
  forged: ForgedSenders,
  number: number,
  signal: AbortSignal,
) {
  let isNull = false
  let refusal: string | undefined
  const answered = await rpc.try({
    method: '_getBlockByNumber',
    params: [toQuantity(number), true],
    ...reached(pool, number),
    everyNode: true,
    signal,
    accept: (result) => {
      isNull = result === null
      const block = readBlock(result, { number, rules })
      if (!block) refusal ??= whyRefused(result, rules)
      return block && forged.areSigned(number, block) ? block : undefined
    },
  })
  return take(answered, `block ${number}`, { isNull, refusal })
}

/** The answer; throws what says whether asking again can help. */
function take<answer>(
  answered: Answered<answer>,
  what: string,
  { isNull, refusal }: { isNull: boolean; refusal?: string | undefined },
): answer {
  if (answered.kind === 'answer') return answered.answer
  if (answered.kind === 'error' ? isPruned(answered) : isNull)
    throw new BlockMissingError(`no node has ${what}`)
  const reason =
    answered.kind === 'error' ? answered.message : (refusal ?? 'no answer can be trusted')
  // Where a null is what stands against one that has discarded it, no node may ever have it: no reason to wait for long.
  const mayCome =
    answered.kind === 'error' && (isPassing(answered) || (answered.isDisputed && !isNull))
  if (mayCome) throw new ChainUnavailableError(`${what}: ${reason}`)
  throw new UnreadableError(`${what}: ${reason}`)
}

/**
 * The receipts, while the block is traced. A trace that is far too large may end the only WebSocket that a node allows, and the
 * calls beside it: then they are asked for once more after it.
 */
const fetchReceiptsBeside = async (
  tools: Tools,
  block: ReadBlock,
  inside: Promise<Internal>,
  signal: AbortSignal,
): Promise<RawReceipt[]> =>
  await fetchReceipts(tools, block, signal).catch(async (error: unknown) => {
    const isAnswered = error instanceof BlockMissingError || error instanceof UnreadableError
    if (isAnswered || !(error instanceof ChainUnavailableError)) throw error
    await inside
    // The connection comes back in the meantime.
    await tools.clock.sleep(afterTraceMs, signal)
    return await fetchReceipts(tools, block, signal)
  })

const afterTraceMs = 1_000

const foreignReceipts =
  'they are not those of its header; if other nodes send the same, set `proof: bloom`'

// Single receipts are the last resort. All of a large block at once would fill the queue of the pool.
const receiptsAtOnce = 256

async function fetchReceipts(
  { rpc, pool, rules }: Tools,
  block: ReadBlock,
  signal: AbortSignal,
): Promise<RawReceipt[]> {
  const number = Number(block.number)
  if (pool.can('block_receipts')) {
    let isNull = false
    const asking = rpc.try({
      method: '_getBlockReceipts',
      params: [block.hash],
      needs: 'block_receipts',
      ...reached(pool, number),
      everyNode: true,
      signal,
      accept: (result) => {
        isNull = result === null
        const receipts = result as RawReceipt[]
        return Array.isArray(result) && provesReceipts(block, receipts, rules)
          ? receipts
          : undefined
      },
    })
    const answered = await asking.catch((error: unknown) => {
      // Too large as a whole: then one by one.
      if (error instanceof UnreadableError) return undefined
      throw error
    })
    const refusal = rules.proof === 'root' ? foreignReceipts : undefined
    if (answered) return take(answered, `the receipts of block ${number}`, { isNull, refusal })
  }
  const receipts: RawReceipt[] = []
  for (let at = 0; at < block.transactions.length; at += receiptsAtOnce)
    receipts.push(
      ...(await Promise.all(
        block.transactions.slice(at, at + receiptsAtOnce).map(async ({ hash }) => {
          const answered = await rpc.try({
            method: '_getTransactionReceipt',
            params: [hash],
            ...reached(pool, number),
            everyNode: true,
            signal,
            accept: (result) => {
              const receipt = result as RawReceipt | null
              return receipt?.blockHash === block.hash ? receipt : undefined
            },
          })
          return take(answered, `the receipt of ${hash}`, { isNull: false })
        }),
      )),
    )
  if (!provesReceipts(block, receipts, rules))
    throw new UnreadableError(`the receipts of block ${number}: ${foreignReceipts}`)
  return receipts
}

/** Transactions whose sender a node made up. */
type ForgedSenders = {
  add(number: number, transaction: number): void
  /** Loads what judging needs, where the block has suspects. */
  prepare(number: number): Promise<void>
  /** Whether the claimed senders of suspect transactions are their signers. */
  areSigned(number: number, block: ReadBlock): boolean
}

// Each is one lie that was found out; a node that lies more is one to remove.
const maxBlocks = 1_000

/** Remembers transactions with a false sender, so that no node gives the same one again. */
function createForgedSenders(): ForgedSenders {
  const suspects = new Map<number, Set<number>>()
  // Loaded at the first suspect: most processes never need it.
  let recover: RecoverSigner | undefined
  return {
    add: (number, transaction) => {
      const found = suspects.get(number) ?? new Set()
      found.add(transaction)
      suspects.delete(number)
      suspects.set(number, found)
      if (suspects.size > maxBlocks) suspects.delete(suspects.keys().next().value!)
    },
    prepare: async (number) => {
      if (suspects.has(number)) recover ??= await loadRecoverSigner()
    },
    areSigned: (number, { transactions, encodedOf }) => {
      for (const index of suspects.get(number) ?? []) {
        const encoded = index < transactions.length ? encodedOf(index) : undefined
        const signer = encoded && recover?.(encoded)
        if (signer !== undefined && signer !== transactions[index]!.from.toLowerCase()) return false
      }
      return true
    },
  }
}
