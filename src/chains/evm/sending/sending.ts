// Managed transactions on EVM chains: defaults, checks, broadcast and the fate of a transaction. It uses the
// pool of nodes. A transaction that was handed to a node is never reported as refused unless every node
// refused it.

import { ChainUnavailableError } from '../../chain.ts'
import { toHex } from '../../hex.ts'
import type {
  BlockLimits,
  EstimatedCall,
  Handover,
  PaymentProblem,
  Sending,
  TokenPayment,
} from '../../sending.ts'
import { callContract } from '../balances/contract-calls.ts'
import type { FetchBlock } from '../block/fetch.ts'
import { encodeCall, readWord } from '../codec/abi.ts'
import { toQuantity } from '../codec/raw.ts'
import { reasonOf } from '../codec/revert-reason.ts'
import { meaningOf, readError } from '../pool/node-error.ts'
import type { EvmNodes } from '../pool/nodes.ts'
import type { BroadcastOutcome, RawJson } from '../pool/pool-types.ts'
import type { Rpc } from '../pool/rpc.ts'
import { createFindNonceUse } from './nonce-use.ts'

/** Called for a transaction that is sent to the nodes: its bytes and its hash. */
export type OnBroadcast = (raw: Buffer, hash: Buffer) => void

type Tools = {
  rpc: Rpc
  pool: EvmNodes
  fetchBlock: FetchBlock
  onBroadcast?: OnBroadcast | undefined
  broadcastTimeoutMs?: number | undefined
}

// Shorter than the time after which the sender takes over what an operation has begun.
const usualTimeoutMs = 8_000

const quantity = /^0x[0-9a-f]{1,64}$/i
const acceptQuantity = (result: unknown): bigint | undefined =>
  typeof result === 'string' && quantity.test(result) ? BigInt(result) : undefined

const acceptLimits = (result: unknown): BlockLimits | undefined => {
  const block = result as { gasLimit?: unknown; baseFeePerGas?: unknown } | null
  const gas_limit = acceptQuantity(block?.gasLimit)
  return gas_limit === undefined
    ? undefined
    : { gas_limit, base_fee: acceptQuantity(block?.baseFeePerGas) }
}

/**
 * 21,000 and the data, 16 for a byte and 4 for a zero (EIP-2028). Later forks and rollups ask for
 * more (EIP-7623, the data fee of Arbitrum), none for less: below this every node refuses.
 */
export const intrinsicGas = (data: Buffer): bigint => {
  let gas = 21_000
  for (const byte of data) gas += byte === 0 ? 4 : 16
  return BigInt(gas)
}

/** Nodes compute a price from the blocks, but some look at their pools as well. */
const keptMs = 1_000

/**
 * Asks once for each head, and again after a second: price and limits are equal for all callers, and two of five calls
 * to a node for each new transaction.
 */
export function keepForHead<value>(
  pool: Pick<EvmNodes, 'head'>,
  ask: (signal: AbortSignal) => Promise<value>,
  now: () => number = performance.now.bind(performance),
): (signal: AbortSignal) => Promise<value> {
  let known: { hash: string; value: value; until: number } | undefined
  return async (signal) => {
    const hash = pool.head()?.hash
    if (known && known.hash === hash && now() < known.until) return known.value
    const value = await ask(signal)
    // The answer may be of the head that has come meanwhile.
    if (hash !== undefined && hash === pool.head()?.hash)
      known = { hash, value, until: now() + keptMs }
    return value
  }
}

/** Brings signed transactions onto an EVM chain. */
export function createSending(tools: Tools): Sending {
  const { rpc, pool, fetchBlock, onBroadcast, broadcastTimeoutMs = usualTimeoutMs } = tools

  /** Only of nodes that are at the head: one that lags would give a nonce away twice. */
  const atHead = (): { minBlock?: number } => {
    const number = pool.head()?.number
    return number === undefined ? {} : { minBlock: number }
  }
  const countAt = async (address: Buffer, at: string, signal: AbortSignal): Promise<number> =>
    Number(
      await rpc.ask({
        method: '_getTransactionCount',
        params: [toHex(address), at],
        ...atHead(),
        signal,
        accept: acceptQuantity,
      }),
    )

  const estimate = async (call: EstimatedCall, signal: AbortSignal) => {
    const answered = await rpc.try({
      method: '_estimateGas',
      params: [
        {
          from: toHex(call.from),
          to: toHex(call.to),
          value: toQuantity(call.value),
          ...(call.data.length > 0 && { data: toHex(call.data) }),
        },
      ],
      ...atHead(),
      signal,
      accept: acceptQuantity,
    })
    if (answered.kind === 'answer') return { ok: true as const, gas: answered.answer }
    // What a node says of itself is not about the call.
    if (answered.kind === 'error' && meaningOf(JSON.stringify(answered)) === 'answer')
      return { ok: false as const, detail: await reasonOf(answered) }
    throw new ChainUnavailableError('no node estimates gas')
  }

  const askPrice = (signal: AbortSignal): Promise<bigint> =>
    rpc.ask({ method: '_gasPrice', params: [], ...atHead(), signal, accept: acceptQuantity })
  const askLimits = (signal: AbortSignal): Promise<BlockLimits> =>
    rpc.ask({
      method: '_getBlockByNumber',
      params: ['latest', false],
      ...atHead(),
      signal,
      accept: acceptLimits,
    })

  return {
    chainId: async (signal) => {
      // Known from the probes of the nodes: no call can give another one.
      const pinned = pool.chainId()
      if (pinned !== undefined) return BigInt(pinned)
      return await rpc.ask({ method: '_chainId', params: [], signal, accept: acceptQuantity })
    },
    transactionCount: countAt,
    gasPrice: keepForHead(pool, askPrice),
    balance: (address, signal) =>
      rpc.ask({
        method: '_getBalance',
        params: [toHex(address), 'latest'],
        ...atHead(),
        signal,
        accept: acceptQuantity,
      }),
    blockLimits: keepForHead(pool, askLimits),
    intrinsicGas,
    estimate,
    explainPayment: createExplainPayment({ rpc }),
    broadcast: async (raw, hash) => {
      onBroadcast?.(raw, hash)
      return handoverOf(await pool.broadcast(`"${toHex(raw)}"`, broadcastTimeoutMs))
    },
    findBlockOf: async (hash, signal) => {
      const found = await rpc.ask<{ number: number | undefined }>({
        method: '_getTransactionReceipt',
        params: [toHex(hash)],
        ...atHead(),
        signal,
        accept: (result) => {
          if (result === null) return { number: undefined }
          const number = acceptQuantity((result as { blockNumber?: unknown }).blockNumber)
          return number === undefined ? undefined : { number: Number(number) }
        },
      })
      return found.number
    },
    findNonceUse: createFindNonceUse({
      countAt: (address, number, signal) => countAt(address, toQuantity(number), signal),
      fetchBlock,
    }),
  }
}

const nonceUsed =
  /nonce too low|nonce is too low|invalid nonce|OldNonce|nonce.{0,200}already (?:used|consumed)/i

/**
 * The refusals after which a transaction is not in the pool of the node that refuses it: words of
 * geth, Erigon, Nethermind, Besu, Reth and anvil. A full pool is not among them: room comes by itself.
 */
const refusals: readonly RegExp[] = [
  /insufficient (?:funds|balance)|upfront (?:cost|gas) .{0,200}balance|InsufficientFunds|not enough (?:funds|balance)|sender.{0,200}insufficient/i,
  /intrinsic gas|gas too low|GasLimitTooLow|intrinsic_gas/i,
  /underpriced|gas price (?:is )?(?:too low|below)|FeeTooLow|max fee per gas less than|fee cap.{0,200}less than|below (?:the )?(?:minimum|base fee)|priority fee too low/i,
  /chain ?id|invalid sender|invalid signature|replay.?protected|signer/i,
  /exceeds block gas limit|gas limit (?:is )?too high|gas limit reached|GasLimitExceeded/i,
  /oversized data|exceeds max(?:imum)? size|TxSizeLimit|transaction.{0,200}too (?:large|big)/i,
  /exceeds the configured cap|tx fee .{0,200}exceeds/i,
  /nonce gap|nonce too high|NonceTooHigh|NonceGap|nonce too distant/i,
  /rlp|cannot decode|transaction type not supported|invalid transaction (?:type|format)/i,
]

const longest = 300

/** What the answers of all nodes to the same bytes come to. */
export function handoverOf(outcome: BroadcastOutcome): Handover {
  if ('ok' in outcome && outcome.ok) return { kind: 'accepted' }
  const { asked = 1, errors = [] } = outcome
  const detail = 'failure' in outcome ? failureText(outcome.failure) : messageOf(outcome.error)
  // No byte left this process: as good as no attempt.
  if (asked === 0 && errors.length === 0) return { kind: 'unsent', detail }
  // One node that has seen the nonce used is enough: the others may be behind.
  if (errors.some((error) => nonceUsed.test(messageOf(error))))
    return { kind: 'nonce_used', detail }
  // A node that timed out may have it. Only refusals of all prove that it is nowhere.
  const isCertain = errors.length === asked && errors.every(isRefusal)
  return { kind: isCertain ? 'refused' : 'unknown', detail }
}

const isRefusal = (error: RawJson): boolean =>
  meaningOf(error) === 'answer' && refusals.some((words) => words.test(messageOf(error)))

const messageOf = (error: RawJson): string =>
  readError(error).message.replaceAll(/\s+/g, ' ').slice(0, longest)

const failureText = (failure: string): string =>
  failure === 'TIMEOUT' ? 'no node answered in time' : 'no node answered'

/** What the books of the token say against a payment. */
function createExplainPayment({ rpc }: { rpc: Rpc }) {
  return async (
    payment: TokenPayment,
    signal: AbortSignal,
  ): Promise<PaymentProblem | undefined> => {
    const { contract_type, contract_address, from, value } = payment
    const to = toHex(contract_address)
    const read = async (data: string): Promise<bigint | undefined> => {
      const returned = await callContract(rpc, { call: { to, data }, block: 'latest' }, signal)
      return returned === undefined ? undefined : readWord(returned)
    }
    if (contract_type === 'CONTRACT_TYPE_ERC20') {
      const balance = await read(encodeCall('balanceOf(address)', from))
      if (balance === undefined)
        return { part: 'contract_address', detail: `${to} is no ERC-20 contract.` }
      if (balance >= value) return undefined
      return against(`The balance of ${toHex(from)} is ${balance}, less than ${value}.`)
    }
    const owner = await read(encodeCall('ownerOf(uint256)', value))
    if (owner === undefined) return against(`The item ${value} does not exist in ${to}.`)
    if (owner === BigInt(toHex(from))) return undefined
    return against(`${toHex(from)} is not the owner of the item ${value}.`)
  }
}

const against = (detail: string): PaymentProblem => ({ part: 'value', detail })
