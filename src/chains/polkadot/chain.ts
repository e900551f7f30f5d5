// The Polkadot chain: the port of `chains/chain.ts` on Substrate nodes. It uses final blocks only,
// so it never reorganizes. Decoding follows the metadata of the runtime of each block.

import { type Clock, systemClock } from '../../lib/clock.ts'
import { type Log, silentLog } from '../../lib/log.ts'
import type { AddressRules, BlockHeader, Chain } from '../chain.ts'
import { createVerificationCounts, type Verification } from '../verification.ts'
import { createReadBalances } from './balances.ts'
import { createPolkadotFamily } from './family.ts'
import { createFetch } from './fetch.ts'
import { createFinality } from './finality.ts'
import { follow } from './follow.ts'
import type { BlockName } from './grandpa.ts'
import { type NodeOptions, openNodes } from './nodes.ts'
import { createRuntimes } from './runtimes.ts'
import { createTokens } from './tokens.ts'

/** What a Substrate chain is made of. */
export type PolkadotChainOptions = {
  upstreams: readonly NodeOptions[]
  clock?: Clock
  log?: Log
  /** The hash of the first block; a node of another chain is never used. */
  genesis?: string
  /** The prefix of printed addresses, before and instead of what the chain says. */
  ss58_prefix?: number
  /** What the chain said before, for the time until it says it again. */
  rules?: AddressRules | undefined
  /** Whether states are read with their proofs; by default they are not. */
  verification?: Verification
  /** Nodes of the relay chain, which prove what is final; with full verification only. */
  relay?: readonly NodeOptions[]
  /** The number of the parachain on the relay chain; 1000, which is Asset Hub everywhere, without it. */
  paraId?: number
  /** A block of the relay chain from which on its authorities are followed. */
  trusted?: BlockName
  /** How long to wait for news before looking again. */
  pollMs?: number
  /** Blocks that are fetched at once while behind. */
  inFlight?: number
  requestTimeoutMs?: number
  probeEveryMs?: number
  /** How long a question waits for a node that can answer. */
  waitMs?: number
  /** How long a missing state is retried before it counts as lost. */
  patienceMs?: number
  /** The same while some node that may have it is unreachable. */
  longPatienceMs?: number
}

// The prefix of addresses is known once a runtime was read; until then a node may be missing.
const learnAgainMs = 1_000

/** A chain of the Substrate family (Polkadot Asset Hub and its like) behind its nodes. */
export function createPolkadotChain(options: PolkadotChainOptions): Chain {
  const { upstreams, clock = systemClock, log = silentLog, genesis, ss58_prefix } = options
  const { requestTimeoutMs, probeEveryMs, waitMs } = options
  const stopping = new AbortController()
  // Zero is the prefix of Polkadot; the runtime corrects it as soon as it was read.
  let prefix = ss58_prefix ?? options.rules?.ss58_prefix
  const family = createPolkadotFamily({ ss58_prefix: () => prefix ?? 0 })
  const nodes = openNodes({
    upstreams,
    clock,
    log,
    ...(genesis !== undefined && { genesis }),
    ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
    ...(probeEveryMs !== undefined && { probeEveryMs }),
    ...(waitMs !== undefined && { waitMs }),
  })
  const { set } = nodes
  const runtimes = createRuntimes({
    nodes,
    stopping: stopping.signal,
    onCodecs: (codecs) => {
      prefix = ss58_prefix ?? codecs.ss58_prefix ?? prefix
    },
  })
  const counts = createVerificationCounts(options.verification ?? 'structural')
  const finality =
    // Finality can be proven by the relay chain only. Without its nodes states are proven, and the
    // head is believed.
    counts.mode === 'full' && options.relay && options.relay.length > 0
      ? createFinality({
          ...{
            nodes,
            counts,
            clock,
            log,
            trusted: options.trusted,
            paraId: options.paraId ?? 1_000,
          },
          relay: openNodes({ upstreams: options.relay, clock, log }),
        })
      : undefined
  const fetch = createFetch({ nodes, runtimes, native: family.native, counts, finality })

  const head = async (signal: AbortSignal): Promise<BlockHeader> => {
    // Waits for a node where there is none yet.
    if (set.best() < 0) await set.identity(signal)
    return await fetch.header(set.best(), signal)
  }
  const header = async (number: number, signal: AbortSignal) => {
    if (set.best() < 0) await set.identity(signal)
    return number > set.best() ? undefined : await fetch.header(number, signal)
  }
  const { pollMs = 2_000, inFlight = 16, patienceMs = 15_000, longPatienceMs = 600_000 } = options
  const tools = { nodes, clock, fetch, pollMs, inFlight, patienceMs, longPatienceMs }
  const readBalances = createReadBalances({ nodes, runtimes, counts })
  const tokens = createTokens({ nodes, runtimes, native: family.native, head })
  const joined = (signal: AbortSignal) => AbortSignal.any([signal, stopping.signal])

  /** How addresses are printed must not wait until a block comes. */
  const learnPrefix = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted && ss58_prefix === undefined)
      try {
        const at = await head(signal)
        // The balance of an empty account: it needs the codecs, and these contain the prefix.
        await readBalances([{ address: Buffer.alloc(32), asset: family.native }], at, signal)
        return
      } catch {
        await clock.sleep(learnAgainMs, signal).catch(() => {})
      }
  }
  void learnPrefix(stopping.signal)

  return {
    ...family,
    identity: (signal) => set.identity(joined(signal)),
    head: (signal) => head(joined(signal)),
    header: (number, signal) => header(number, joined(signal)),
    follow: (after, signal) => follow(tools, after, joined(signal)),
    block: (number, _, signal) => fetch.block(number, joined(signal)),
    newest: () => (set.best() < 0 ? undefined : set.best()),
    readBalances: (queries, at, signal) => readBalances(queries, at, joined(signal)),
    tokens: {
      verifyToken: (token, signal) => tokens.verifyToken(token, joined(signal)),
      resolveImport: (request, signal) => tokens.resolveImport(request, joined(signal)),
    },
    addressRules: () => (prefix === undefined ? undefined : { ss58_prefix: prefix }),
    status: () => ({
      chain_id: nodes.genesis() ?? null,
      head: set.best() < 0 ? null : set.best(),
      ss58_prefix: prefix ?? 0,
      verification: { ...counts.status(), ...(finality && { anchor: finality.anchor() }) },
      upstreams: set.status(),
    }),
    stop: async () => {
      stopping.abort(new Error('the chain is stopped'))
      await Promise.all([nodes.stop(), finality?.stop()])
    },
  }
}
