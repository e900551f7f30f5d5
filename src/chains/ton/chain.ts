// The TON chain: blocks by masterchain seqno over the toncenter HTTP API or from lite servers, with all their shard blocks. It uses
// `chains/nodes` and `chains/follow`. It delivers every transaction of a masterchain block exactly once, in
// logical time.

import { type Clock, systemClock } from '../../lib/clock.ts'
import { type Log, silentLog } from '../../lib/log.ts'
import type { AddressRules, BlockHeader, Chain } from '../chain.ts'
import { createSuspects } from '../suspects.ts'
import { createVerificationCounts, type Verification } from '../verification.ts'
import { createReadBalances } from './balances.ts'
import { createTonFamily } from './family.ts'
import { createFetcher, toHeader } from './fetch.ts'
import { follow } from './follow.ts'
import { createGetMethods } from './get-methods.ts'
import { createFindAccounts } from './jetton-accounts.ts'
import { createResolveImport, createVerifyToken } from './jettons.ts'
import { createKeyBlocks } from './lite/key-blocks.ts'
import type { LiteBlockId } from './lite/messages.ts'
import { createNodes } from './nodes.ts'
import type { UpstreamOptions } from './toncenter.ts'

/** What a TON chain is made of. */
export type TonChainOptions = {
  upstreams: readonly UpstreamOptions[]
  /** -239 is the production network; without it, what the first node says. */
  globalId?: number
  /** What the nodes said before, for the time until they say it again. */
  rules?: AddressRules | undefined
  clock?: Clock
  log?: Log
  /** `full` proves masterchain blocks by the signatures of validators; all nodes must be lite servers. */
  verification?: Verification
  /** A key block from which on validators are followed. */
  trusted?: LiteBlockId
  /** How often to look for a new block. */
  pollMs?: number
  /** Blocks that are fetched at once while behind. */
  inFlight?: number
  /** How long a block that no node has is asked for again before it counts as lost. */
  patienceMs?: number
  /** How long an index (API v3) may take: who waits for it could have asked API v2 meanwhile. */
  indexTimeoutMs?: number
}

/** The global id of the production network. */
const production = -239

/** TON behind nodes that speak the toncenter HTTP API, or lite servers. */
export function createTonChain(options: TonChainOptions): Chain {
  const { upstreams, globalId, clock = systemClock, log = silentLog } = options
  const { pollMs = 400, inFlight = 8, patienceMs = 15_000, indexTimeoutMs = 5_000 } = options
  const counts = createVerificationCounts(options.verification ?? 'structural')
  if (counts.mode === 'full' && upstreams.some(({ key }) => !key))
    throw new Error('Full verification of TON needs lite servers: an HTTP API gives no proofs.')
  const keyBlocks =
    counts.mode === 'full' ? createKeyBlocks({ counts, log, trusted: options.trusted }) : undefined
  const nodes = createNodes({
    upstreams,
    clock,
    log,
    indexTimeoutMs,
    counts,
    keyBlocks,
    ...(globalId !== undefined && { globalId }),
  })
  const { set } = nodes
  const families = {
    production: createTonFamily({ production: true }),
    test: createTonFamily({ production: false }),
  }
  const rules = (): AddressRules | undefined => {
    const id = nodes.globalId()
    return id === undefined ? options.rules : { production: id === production }
  }
  // The stricter rules hold until a node has said which network it is.
  const family = () => (rules()?.production === false ? families.test : families.production)
  const { native } = families.production
  const fetcher = createFetcher({ nodes, native, counts, now: clock.now })
  const stopping = new AbortController()
  // A call ends when its caller gives up and when the chain stops.
  const joined = (signal: AbortSignal) => AbortSignal.any([signal, stopping.signal])

  const headerOf = async (number: number, signal: AbortSignal): Promise<BlockHeader> =>
    toHeader(await fetcher.header(number, signal))
  const header = async (number: number, signal: AbortSignal): Promise<BlockHeader | undefined> => {
    // Unknown heights are asked for once; a block above them does not exist yet.
    if (number > set.best() && number > (await set.refreshAny(signal))) return undefined
    return await headerOf(number, signal)
  }
  const head = async (signal: AbortSignal): Promise<BlockHeader> =>
    await headerOf(await set.refreshAny(signal), signal)

  const suspects = createSuspects()
  // Tokens of which not all accounts could be asked for. Soon they are again, apart from the others.
  const unfinished = createSuspects({ blocks: 1_000 })
  const methods = createGetMethods({ nodes, clock })
  const readBalances = createReadBalances({ nodes, methods, clock, suspects, unfinished })
  const resolveImport = createResolveImport({
    methods,
    parseAddress: (text) => family().parseAddress(text),
  })
  const verifyToken = createVerifyToken({ methods })
  const findAccounts = createFindAccounts({ methods })
  const tools = { nodes, fetcher, clock, pollMs, inFlight, patienceMs }

  return {
    ...families.production,
    parseAddress: (text) => family().parseAddress(text),
    formatUserFriendly: (address) => family().formatUserFriendly!(address),
    parseToken: (text) => family().parseToken!(text),
    presentTransfer: (view) => family().presentTransfer(view),
    transferKey: (view) => family().transferKey(view),
    paysFee: (view) => family().paysFee(view),
    presentAsset: (view) => family().presentAsset(view),
    identity: (signal) => set.identity(joined(signal)),
    head: (signal) => head(joined(signal)),
    header: (number, signal) => header(number, joined(signal)),
    follow: (after, signal) => follow(tools, after, joined(signal)),
    block: (number, _, signal) => fetcher.block(number, joined(signal)),
    newest: () => (set.best() < 0 ? undefined : set.best()),
    readBalances: (queries, at, signal) => readBalances(queries, at, joined(signal)),
    isReadApart: ({ contract_address }) =>
      [suspects, unfinished].some((some) => some.has(contract_address, set.best())),
    tokens: {
      resolveImport: (request, signal) => resolveImport(request, joined(signal)),
      verifyToken: (token, signal) => verifyToken(token, joined(signal)),
      findAccounts: (asset, owners, signal) => findAccounts(asset, owners, joined(signal)),
    },
    addressRules: rules,
    status: () => ({
      chain_id: nodes.globalId() ?? null,
      head: set.best() < 0 ? null : set.best(),
      upstreams: nodes.status(),
      verification: { ...counts.status(), ...(keyBlocks && { anchor: keyBlocks.anchor() }) },
    }),
    stop: async () => {
      stopping.abort(new Error('the chain is stopped'))
      await nodes.stop()
    },
  }
}
