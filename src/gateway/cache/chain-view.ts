import type { Head, Pool } from '../../chains/evm/pool/pool-types.ts'
import type { Log } from '../../lib/log.ts'

/** What is known of the canonical chain near its head. */
export type ChainView = {
  /**
   * The hash of the canonical block at this height; undefined where it is not known for sure: outside
   * of the window, while a new branch is being linked, or while nodes disagree about it.
   */
  hashAt(number: number): string | undefined
  /** The hash at this height on the branch of the best head, also while nodes disagree about it. */
  bestHashAt(number: number): string | undefined
  /** Whether a new branch is being linked: what is canonical is about to change. */
  isLinking(): boolean
  /** The height of a canonical block of the window. */
  numberOf(hash: string): number | undefined
  /** Blocks up to this one do not change any more; -1 when there are none. */
  final(): number
  /** Changes whenever a block may have left the chain. */
  generation(): number
  stop(): void
}

type Seen = { head: Head; time: number; fork: number }

const fetchTimeoutMs = 5_000
/** A node that was silent for so long has no say in what is canonical. */
const forgetAfterMs = 60_000

/**
 * Follows the heads of all upstreams and links each one back by parent hashes to what is known. Until
 * that is done nothing of the window is vouched for, so that no answer of a dropped block is given.
 */
export function createChainView(options: {
  pool: Pool
  prefix: string
  log: Log
  now(): number
  /** Blocks above this one may have left the chain. */
  onDropped(above: number): void
  windowSize?: number
  finalityDepth?: number
}): ChainView {
  const { pool, prefix, log, now, onDropped } = options
  const { windowSize = 256, finalityDepth = 64 } = options
  const hashes = new Map<number, string>()
  const numbers = new Map<string, number>()
  const seen = new Map<string, Seen>()
  const waiting = new Map<string, Head>()
  let tip: Head | undefined
  /** The lowest height that is linked to the tip. */
  let floor = 0
  let final = -1
  let generation = 0
  let linking = false
  let disputedAbove = Number.POSITIVE_INFINITY
  let stopped = false

  const put = (number: number, hash: string) => {
    const old = hashes.get(number)
    if (old !== undefined) numbers.delete(old)
    hashes.set(number, hash)
    numbers.set(hash, number)
  }
  const remove = (number: number) => {
    const old = hashes.get(number)
    if (old === undefined) return
    numbers.delete(old)
    hashes.delete(number)
  }
  const drop = (above: number) => {
    generation++
    onDropped(above)
  }

  const advance = (head: Head) => {
    put(head.number, head.hash)
    tip = head
    if (head.number - finalityDepth > final) final = head.number - finalityDepth
    while (head.number - floor >= windowSize) remove(floor++)
  }

  /** Nothing of what was known can be linked to this head. */
  const restart = (head: Head) => {
    hashes.clear()
    numbers.clear()
    if (head.number > 0) put(head.number - 1, head.parent_hash)
    floor = Math.max(0, head.number - 1)
    // Far below its predecessor: what was taken for final may be gone as well.
    const below = head.number <= final ? -1 : final
    if (below < 0) final = -1
    advance(head)
    drop(below)
  }

  /** The blocks from this head down to the first that is known; undefined when they cannot be had. */
  const walkBack = async (head: Head) => {
    const branch: { number: number; hash: string }[] = []
    let number = head.number - 1
    let hash = head.parent_hash
    while (number >= floor && hashes.get(number) !== hash) {
      branch.push({ number, hash })
      if (branch.length >= windowSize || stopped) return undefined
      const parent = await parentOf(hash)
      if (parent === undefined) return undefined
      hash = parent
      number--
    }
    return number < floor ? undefined : { branch, ancestor: number }
  }

  const parentOf = async (hash: string): Promise<string | undefined> => {
    const outcome = await pool.request({
      method: `${prefix}_getBlockByHash`,
      params: `["${hash}",false]`,
      idempotent: true,
      timeoutMs: fetchTimeoutMs,
      isUseless: (reply) => reply.ok && reply.result === 'null',
    })
    if ('failure' in outcome || !outcome.ok) return undefined
    return /"parentHash": ?"(0x[0-9a-f]{64})"/.exec(outcome.result)?.[1]
  }

  const link = async (head: Head, upstream: string) => {
    const old = tip
    if (!old) return
    const found = await walkBack(head)
    if (stopped) return
    if (!found) return restart(head)
    const { branch, ancestor } = found
    if (ancestor < final) final = -1
    if (ancestor < old.number) drop(final < 0 ? -1 : ancestor)
    // A shorter branch of one node, while the pool still holds with the longer one: a dispute.
    if (head.number <= old.number && pool.head()?.hash === old.hash) {
      const known = seen.get(upstream)
      if (known?.head === head) known.fork = ancestor
      return
    }
    for (let number = ancestor + 1; number <= old.number; number++) remove(number)
    for (const { number, hash } of branch) put(number, hash)
    advance(head)
  }

  const settleDisputes = () => {
    disputedAbove = Number.POSITIVE_INFINITY
    const horizon = now() - forgetAfterMs
    for (const [upstream, { head, time, fork }] of seen) {
      if (time < horizon) seen.delete(upstream)
      else if (head.number >= floor && hashes.get(head.number) !== head.hash)
        disputedAbove = Math.min(disputedAbove, fork)
    }
  }

  /** Handles a head without a request to a node, where that is possible. */
  const acceptAtOnce = (head: Head): boolean => {
    if (!tip) restart(head)
    else if (head.number === tip.number + 1 && head.parent_hash === tip.hash) advance(head)
    else if (head.number < floor || hashes.get(head.number) === head.hash) rollBack(tip, head)
    else return false
    return true
  }

  // A head that is known, or far below: a node that lags, unless the pool itself went back.
  const rollBack = (old: Head, head: Head) => {
    const best = pool.head()
    if (!best || best.number >= old.number) return
    if (head.number < floor) return restart(head)
    for (let number = head.number + 1; number <= old.number; number++) remove(number)
    tip = head
    if (head.number < final) final = -1
    drop(final < 0 ? -1 : head.number)
  }

  const run = async () => {
    linking = true
    try {
      for (;;) {
        const next = waiting.entries().next().value
        if (!next || stopped) break
        waiting.delete(next[0])
        if (!acceptAtOnce(next[1])) await link(next[1], next[0])
      }
    } catch (error) {
      log.error({ err: error }, 'a head could not be linked')
      waiting.clear()
      tip = undefined
    } finally {
      linking = false
      settleDisputes()
    }
  }

  const onHead = (head: Head, upstream: string) => {
    const fork = Math.min(final, head.number - 1)
    seen.set(upstream, { head, time: now(), fork })
    if (!linking && acceptAtOnce(head)) return settleDisputes()
    // At the same height with another hash: that much is gone, whatever the walk finds out.
    if (!linking && tip && head.number <= tip.number) drop(head.number - 1)
    waiting.set(upstream, head)
    if (!linking) void run()
  }

  const unsubscribe = pool.onHead(onHead)
  const first = pool.head()
  if (first) acceptAtOnce(first)

  return {
    hashAt: (number) =>
      linking || number < floor || number > disputedAbove ? undefined : hashes.get(number),
    bestHashAt: (number) => (linking || number < floor ? undefined : hashes.get(number)),
    isLinking: () => linking,
    numberOf: (hash) => {
      const number = linking ? undefined : numbers.get(hash)
      return number === undefined || number > disputedAbove ? undefined : number
    },
    final: () => final,
    generation: () => generation,
    stop: () => {
      stopped = true
      unsubscribe()
    },
  }
}
