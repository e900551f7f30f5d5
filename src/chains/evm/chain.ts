// The EVM chain: the port of `chains/chain.ts` on a pool of JSON-RPC nodes. It uses `lib`,
// `chains/follow` and its own folders. It guarantees that every block it returns is verified
// against its header.

import { type Clock, systemClock } from '../../lib/clock.ts'
import {
  type BlockHeader,
  BlockMissingError,
  type Chain,
  ChainUnavailableError,
  UnreadableError,
} from '../chain.ts'
import { createSuspects } from '../suspects.ts'
import { createReadBalances } from './balances/balances.ts'
import { createReadTokenUris, createVerifyContract } from './balances/tokens.ts'
import { createFetchBlock } from './block/fetch.ts'
import type { TracingPatience } from './block/internal.ts'
import type { Proof, ProofRules } from './block/proof.ts'
import type { Canonical } from './canonical/canonical.ts'
import { readHeader, toHeader, whyRefused } from './codec/header.ts'
import { toQuantity } from './codec/raw.ts'
import { evmFamily } from './family.ts'
import { follow } from './follow.ts'
import { createExplored, type EvmNodes, isPruned } from './pool/nodes.ts'
import { createRpc } from './pool/rpc.ts'
import { createSending, type OnBroadcast } from './sending/sending.ts'

/** What an EVM chain is made of. */
export type EvmChainOptions = {
  /** Belongs to the caller, who stops it. */
  pool: EvmNodes
  /** Chooses the branch and the head; where it is absent, the nodes are asked. */
  canonical?: Canonical
  /** Method prefix of the chain: `eth`. */
  prefix?: string
  clock?: Clock
  /** How long to wait for a push before looking for a new block. */
  pollMs?: number
  /** Blocks that are fetched at once while behind. */
  inFlight?: number
  /** How long a block that no node has is asked for again before it counts as lost. */
  patienceMs?: number
  /** How long traces are waited for. */
  tracing_patience?: Partial<TracingPatience>
  /** How blocks are proved; less than `root` only for chains whose roots follow other rules. */
  proof?: Proof
  /** Transaction types that are accepted without a proof although `proof` is `root`. */
  unproven_types?: readonly number[]
  /** The contract through which the coin is also sent as a token. */
  coin_contract?: string
  /** Whether the senders of what concerns tracked accounts are recovered from their signatures. */
  verify_senders?: boolean
  /** Where Multicall3 stands. */
  multicall?: string
  /** Called for every transaction that is sent to the nodes. */
  onBroadcast?: OnBroadcast
  /** How long nodes have to take a transaction. */
  broadcastTimeoutMs?: number
}

// The address at which it was put on nearly every chain.
const usualMulticall = '0xca11bde05977b3631167028862be2a173976ca11'

/** A chain of the EVM family behind a pool of nodes. */
export function createEvmChain(options: EvmChainOptions): Chain {
  const {
    canonical,
    prefix = 'eth',
    clock = systemClock,
    proof = 'root',
    unproven_types = [],
  } = options
  const pool = canonical ? onBranch(options.pool, canonical) : options.pool
  const rules: ProofRules = { proof, unproven_types: new Set(unproven_types) }
  const rpc = createRpc({ pool, prefix })
  const stopping = new AbortController()
  const fetchBlock = createFetchBlock({
    rpc,
    pool,
    native: evmFamily.native,
    coinContract: options.coin_contract,
    rules,
    verifySenders: options.verify_senders ?? true,
    clock,
    patience: options.tracing_patience,
    explored: createExplored({ pool, clock }),
  })
  const bestNumber = () => pool.head()?.number

  const head = async (signal: AbortSignal): Promise<BlockHeader> => {
    const least = bestNumber()
    let unproven: string | undefined
    const answered = await rpc.try({
      method: '_getBlockByNumber',
      params: ['latest', false],
      ...(least !== undefined && { minBlock: least }),
      everyNode: true,
      signal,
      accept: (result) => {
        const raw = readHeader(result, proof)
        if (!raw) unproven = whyRefused(result, rules)
        const found = raw && toHeader(raw)
        return found && found.number >= (least ?? 0) ? found : undefined
      },
    })
    if (answered.kind === 'answer') return answered.answer
    const reason = answered.kind === 'error' ? answered.message : unproven
    throw new ChainUnavailableError(`the newest block: ${reason ?? 'no answer can be trusted'}`)
  }

  const header = async (
    number: number,
    signal: AbortSignal,
    asked: Proof = proof,
  ): Promise<BlockHeader | undefined> => {
    const least = bestNumber()
    const isAbove = least !== undefined && number > least
    const answered = await rpc.try<BlockHeader | 'none'>({
      method: '_getBlockByNumber',
      params: [toQuantity(number), false],
      ...(least !== undefined && { minBlock: least }),
      everyNode: true,
      signal,
      accept: (result) => {
        if (result === null) return isAbove ? 'none' : undefined
        const raw = readHeader(result, asked)
        if (!raw || Number(raw.number) !== number) return undefined
        // A node on another branch is not asked about this one.
        const branch = canonical?.bestHashAt(number)
        return branch === undefined || branch === raw.hash ? toHeader(raw) : undefined
      },
    })
    if (answered.kind === 'answer') return answered.answer === 'none' ? undefined : answered.answer
    if (isAbove) return undefined
    if (answered.kind === 'error' && !isPruned(answered))
      throw new UnreadableError(`block ${number}: ${answered.message}`)
    // Not the same as another block in its place: nothing may be concluded from it.
    throw new BlockMissingError(`no node has block ${number}`)
  }

  const identity = async (signal: AbortSignal): Promise<string> => {
    const chainId = await rpc.ask({
      method: '_chainId',
      params: [],
      everyNode: true,
      signal,
      accept: (result) => (typeof result === 'string' ? BigInt(result) : undefined),
    })
    // Chains made for tests share an id; the first block distinguishes them.
    // Its header may be written by rules that no later block has; it is a name here, not a proof.
    const genesis = await header(0, signal, 'bloom')
    if (!genesis) throw new ChainUnavailableError('no node has the first block')
    return `eip155:${chainId}:${genesis.hash.toString('hex')}`
  }

  const joined = (signal: AbortSignal) => AbortSignal.any([signal, stopping.signal])
  const { pollMs = 1_000, inFlight = 32, patienceMs = 15_000 } = options
  const tools = {
    ...{ pool, clock, fetchBlock, header, pollMs, inFlight, patienceMs },
    head: async (signal: AbortSignal) => tipOf(canonical) ?? (await head(signal)),
    branchHashAt: (number: number) => bufferOf(canonical?.bestHashAt(number)),
  }
  const { multicall = usualMulticall } = options
  const suspects = createSuspects()
  const readBalances = createReadBalances({ rpc, pool, header, multicall, suspects })
  const verifyContract = createVerifyContract({ rpc })
  const { onBroadcast, broadcastTimeoutMs } = options
  const sending = createSending({ rpc, pool, fetchBlock, onBroadcast, broadcastTimeoutMs })
  const readTokenUris = createReadTokenUris({ rpc })

  return {
    ...evmFamily,
    identity: (signal) => identity(joined(signal)),
    head: (signal) => head(joined(signal)),
    header: (number, signal) => header(number, joined(signal)),
    follow: (after, signal) => follow(tools, after, joined(signal)),
    block: (number, { isTraced = false }, signal) =>
      fetchBlock(number, joined(signal), { isExpected: isTraced, mayRetry: false }),
    newest: bestNumber,
    isReadApart: ({ contract_address }) => suspects.has(contract_address, bestNumber() ?? 0),
    readBalances: (queries, at, signal) => readBalances(queries, at, joined(signal)),
    tokens: {
      verifyContract: (contract, signal) => verifyContract(contract, joined(signal)),
      readTokenUris: (assets, signal) => readTokenUris(assets, joined(signal)),
    },
    sending,
    status: () => ({
      chain_id: pool.chainId() ?? null,
      head: bestNumber() ?? null,
      internal_transfers: pool.can('debug_trace') || pool.can('parity_trace'),
      block_receipts: pool.can('block_receipts'),
    }),
    stop: async () => stopping.abort(new Error('the chain is stopped')),
  }
}

/** The nodes as seen from the canonical chain: its tip is the head. */
const onBranch = (pool: EvmNodes, canonical: Canonical): EvmNodes => ({
  ...pool,
  head: canonical.head,
  onHead: (listener) =>
    canonical.onChange(() => {
      const head = canonical.head()
      if (head) listener(head, 'canonical')
    }),
})

const bufferOf = (hash: string | undefined): Buffer | undefined =>
  hash === undefined ? undefined : Buffer.from(hash.slice(2), 'hex')

function tipOf(canonical: Canonical | undefined): BlockHeader | undefined {
  const head = canonical?.head()
  return (
    head && {
      number: head.number,
      hash: Buffer.from(head.hash.slice(2), 'hex'),
      parent_hash: Buffer.from(head.parent_hash.slice(2), 'hex'),
      time: head.timestamp * 1_000,
    }
  )
}
