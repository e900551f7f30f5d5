// Whether an answer belongs to the canonical branch. Nodes switch branches at different moments. An answer that names its
// block is compared with the branch; one that names none belongs to it if the branch has not changed since the node was
// asked.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { PoolOutcome, RawJson, RpcReply } from '../../chains/evm/pool/pool-types.ts'
import { toNumber } from './encodings.ts'
import type { Method } from './methods.ts'
import type { BlockTarget } from './target.ts'
import type { ReadBlock } from './wrong-block.ts'

/**
 * How an answer of a node relates to the canonical branch. `unknown` when its block is above the tip,
 * or while a branch is being linked; `off` when another block is canonical at its height.
 */
export type Standing = 'on' | 'off' | 'unknown'

/** Compares answers of nodes with the canonical branch. */
export type BranchCheck = {
  /** `begun` is the generation of the chain when the node was asked. */
  answer(method: Method, target: BlockTarget, result: RawJson, begun: number): Standing
  logs(result: RawJson, begun: number): Standing
  /** Of an answer about this height that may name no block. */
  since(begun: number, number: number): Standing
  /** Whether the answer is about the block with this hash, where answers of the method contain it. */
  proves(method: Method, result: RawJson, hash: string): boolean
}

const blockNumber = /"(?:blockNumber|number)": ?"(0x[0-9a-f]{1,13})"/
const blockHash = /"blockHash": ?"(0x[0-9a-f]{64})"/
const placeOfLog = /"block(Hash|Number)": ?"(0x[0-9a-f]+)"/y
const placeStart = '"block'

/** The block that an answer names as its own. */
export function blockOf(result: RawJson): { number: number; hash: string } {
  const number = blockNumber.exec(result)?.[1]
  if (number === undefined) return { number: -1, hash: '' }
  return { number: toNumber(number), hash: blockHash.exec(result)?.[1] ?? '' }
}

const nameOfHash = '"blockHash":'

/** Whether the text names this block as that of a transaction, a receipt or a log, and no other block. */
function namesOnly(result: RawJson, hash: string): boolean {
  const quoted = `"${hash}"`
  let at = result.indexOf(nameOfHash)
  if (at < 0) return false
  for (; at >= 0; at = result.indexOf(nameOfHash, at)) {
    at += nameOfHash.length
    if (result.charCodeAt(at) === 0x20) at++
    if (!result.startsWith(quoted, at)) return false
  }
  return true
}

const proofOf = (plan: Method['plan']): string | undefined => {
  if (plan.kind === 'transaction') return 'blockHash'
  return plan.kind === 'number' || plan.kind === 'hash' ? plan.proof : undefined
}

/** Makes the check. */
export function createBranchCheck(view: Canonical, read: ReadBlock): BranchCheck {
  /** The hash of the block that the answer is about; empty where it has none. */
  const hashOf = ({ plan }: Method, result: RawJson): string => {
    if (proofOf(plan) === 'hash') return read(result)?.hash?.toLowerCase() ?? ''
    return blockHash.exec(result)?.[1] ?? ''
  }

  const proves: BranchCheck['proves'] = ({ plan }, result, hash) => {
    const field = proofOf(plan)
    if (field === undefined || result === '[]') return true
    if (field === 'blockHash') return namesOnly(result, hash)
    // Not any `hash` in the text: each transaction of the block has one as well.
    const block = read(result)
    return block?.hash?.toLowerCase() === hash && !block.isMixed
  }

  /** The hash that a block at this height must have; a standing where there is none. */
  const expectedAt = (number: number, begun: number): string | Standing => {
    const head = view.head()
    if (!head) return 'on'
    // While a branch is being linked it is not known which blocks above the final one are canonical.
    if (view.isLinking()) return number <= view.final() ? 'on' : 'unknown'
    const hash = view.bestHashAt(number)
    if (hash !== undefined) return hash
    if (number > head.number) return 'unknown'
    if (view.isDeepening() && number > view.final()) return 'unknown'
    // Below the window only a switch can have changed it.
    return begun === view.generation() ? 'on' : 'off'
  }

  /** An answer that names no block belongs to a branch that was canonical all the time. */
  const standingSince = (begun: number, number: number): Standing => {
    if (begun !== view.generation()) return 'off'
    const isFinal = number >= 0 && number <= view.final()
    return view.isLinking() && !isFinal ? 'unknown' : 'on'
  }

  return {
    since: standingSince,
    proves,
    answer(method, target, result, begun) {
      // It names no block that could be of another branch.
      if (result === 'null') return 'on'
      const { kind } = method.plan
      // Asked for by a hash: the block may have left the chain while the node was asked.
      if (kind === 'hash' && view.isGone(target.hash)) return 'off'
      if (proofOf(method.plan) === undefined || result === '[]')
        return kind === 'number' ? standingSince(begun, target.number) : 'on'
      const number = target.keep === 'block' ? target.number : blockOf(result).number
      if (number < 0) return 'on'
      const expected = expectedAt(number, begun)
      // A node that has not left the old branch yet gives its block above the tip of a shorter one.
      if (expected === 'unknown' && view.isGone(hashOf(method, result))) return 'off'
      if (expected === 'on' || expected === 'unknown' || expected === 'off') return expected
      return proves(method, result, expected) ? 'on' : 'off'
    },
    logs(result, begun) {
      let number = -1
      let hash = ''
      let last = ''
      let standing: Standing = 'on'
      // Each log names both, in either order. Searching for the text first takes a third of the time: 0.7 ms for 1 MB.
      for (
        let at = result.indexOf(placeStart);
        at >= 0;
        at = result.indexOf(placeStart, at + placeStart.length)
      ) {
        placeOfLog.lastIndex = at
        const [, name, value = ''] = placeOfLog.exec(result) ?? []
        if (name === undefined) continue
        if (name === 'Hash') hash = value
        else number = toNumber(value)
        if (hash === '' || number < 0) continue
        if (hash !== last) {
          const expected = expectedAt(number, begun)
          if (expected === 'unknown') {
            // As in `answer`: above the tip of a shorter branch.
            if (view.isGone(hash)) return 'off'
            standing = 'unknown'
          } else if (expected !== 'on' && expected !== hash) return 'off'
          last = hash
        }
        hash = ''
        number = -1
      }
      return standing
    },
  }
}

// While a chain reorganizes, each answer may be outdated when it arrives. After that the call fails.
const maxRetries = 3

/**
 * Takes an answer that is not on the canonical branch, and fetches again until one is. A node may switch
 * before its new head is known here: then its answer waits until the heads were read again. So no client
 * gets a block of the new branch while others still get the old one, and none gets a block that has left
 * the chain.
 */
export async function reachBranch(options: {
  view: Canonical
  first: { outcome: RpcReply; begun: number }
  fetch(): Promise<{ outcome: PoolOutcome; begun: number }>
  standingOf(result: RawJson, begun: number): Standing
  /** The answer instead of one that is off the branch; it is fetched again when undefined. */
  ifOff(result: RawJson): RpcReply | undefined
}): Promise<{ outcome: PoolOutcome; begun: number }> {
  const { view, standingOf, ifOff } = options
  let found: { outcome: PoolOutcome; begun: number } = options.first
  let above: RawJson | undefined
  for (let left = maxRetries; ; left--) {
    const { outcome, begun } = found
    if ('failure' in outcome || !outcome.ok || standingOf(outcome.result, begun) === 'on')
      return found
    await view.settle()
    const standing = standingOf(outcome.result, begun)
    if (standing === 'on') return found
    if (standing === 'unknown' && !view.isLinking() && !view.isDeepening()) {
      // Above the tip although the nodes were asked for their heads: a node had left its branch before
      // that, or it never shows that block as its head. In the second case it gives it again.
      if (outcome.result === above || left === 0) return found
      above = outcome.result
    }
    const instead = standing === 'off' ? ifOff(outcome.result) : undefined
    if (instead) return { outcome: instead, begun }
    if (left === 0) return { outcome: { failure: 'ABORTED' }, begun }
    found = await options.fetch()
  }
}
