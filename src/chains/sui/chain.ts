// The Sui chain: the port of `chains/chain.ts` on gRPC nodes. It reads the stream of all
// checkpoints, so the cost does not depend on the number of tracked addresses. Records add up to
// the net changes of each transaction.

import { type Clock, systemClock } from '../../lib/clock.ts'
import { type Log, silentLog } from '../../lib/log.ts'
import type { BlockHeader, Chain } from '../chain.ts'
import { createVerificationCounts, type Verification } from '../verification.ts'
import { createReadBalances } from './balances.ts'
import { toBlock, toHeader } from './checkpoint.ts'
import { suiFamily } from './family.ts'
import { follow } from './follow.ts'
import { createNodes, type NodeLimits, type SuiUpstream } from './nodes.ts'
import { createResolveImport, createVerifyToken } from './tokens.ts'
import { createVerifier, type TrustedCheckpoint } from './verifier.ts'

/** What a Sui chain is made of. */
export type SuiChainOptions = {
  upstreams: readonly SuiUpstream[]
  /** The first four bytes of the genesis digest in hex; without it the first node decides. */
  chainId?: string
  clock?: Clock
  log?: Log
  /** With `full` checkpoints are used only with a certificate of the committee (`verifier.ts`). */
  verification?: Verification
  /** Where committees are followed from; without it the first committee is what a node says. */
  trusted?: TrustedCheckpoint
  limits?: Partial<
    NodeLimits & { pollMs: number; stallMs: number; patienceMs: number; staleMs: number }
  >
}

/** A Sui chain behind its nodes, over gRPC. */
export function createSuiChain(options: SuiChainOptions): Chain {
  const { clock = systemClock, log = silentLog, limits = {} } = options
  const { pollMs = 1_000, stallMs = 10_000, patienceMs = 15_000, staleMs = 5_000 } = limits
  const { verification = 'structural', trusted } = options
  const isFull = verification === 'full'
  const nodes = createNodes({ ...options, clock, log, isProvable: isFull })
  const structural = createVerificationCounts('structural')
  const verifier = isFull ? createVerifier({ nodes, log, trusted }) : undefined
  const stopping = new AbortController()
  let newest: BlockHeader | undefined

  const head = async (signal: AbortSignal): Promise<BlockHeader> => {
    const found = await nodes.ask({ full: true }, signal, async (node, limited) => {
      const header = toHeader(await node.client.checkpoint(undefined, limited))
      nodes.showHead(node, header.number)
      return header
    })
    // A lagging node does not move the head back.
    if (!newest || found.number > newest.number) newest = found
    return newest
  }
  const header = async (number: number, signal: AbortSignal): Promise<BlockHeader | undefined> => {
    // Asked only above the known heights, so that a loop over headers costs one call each.
    if (number > nodes.best() && number > (await head(signal)).number) return undefined
    return await nodes.ask(
      { has: number, reached: newest?.number ?? number },
      signal,
      (node, limited) => node.client.checkpoint(number, limited).then(toHeader),
    )
  }
  const highest = (): number | undefined => {
    const number = Math.max(nodes.best(), newest?.number ?? -1)
    return number < 0 ? undefined : number
  }
  const joined = (signal: AbortSignal) => AbortSignal.any([signal, stopping.signal])
  const tools = { nodes, clock, log, head, verifier, pollMs, stallMs, patienceMs }
  const readBalances = createReadBalances({ nodes, clock, staleMs })
  const resolveImport = createResolveImport(nodes)
  const verifyToken = createVerifyToken(nodes)

  return {
    ...suiFamily,
    identity: (signal) => nodes.identity(joined(signal)),
    head: (signal) => head(joined(signal)),
    header: (number, signal) => header(number, joined(signal)),
    follow: (after, signal) => follow(tools, after, joined(signal)),
    block: (number, _, signal) =>
      nodes.ask({ has: number }, joined(signal), async (node, limited) => {
        const checkpoint = await node.client.checkpoint(number, limited)
        await verifier?.check([{ checkpoint, node }], limited)
        return toBlock(checkpoint, verifier?.claimsOf({ checkpoint, node }))
      }),
    newest: highest,
    readBalances: (queries, at, signal) => readBalances(queries, at, joined(signal)),
    tokens: {
      resolveImport: (request, signal) => resolveImport(request, joined(signal)),
      verifyToken: (token, signal) => verifyToken(token, joined(signal)),
    },
    status: () => ({
      chain_id: nodes.pinned()?.slice('sui:'.length) ?? null,
      head: highest() ?? null,
      upstreams: nodes.status(),
      verification: (verifier ?? structural).status(),
    }),
    stop: async () => {
      stopping.abort(new Error('the chain is stopped'))
      await nodes.stop()
    },
  }
}
