import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Pool, PoolFailure, RawJson } from '../../chains/evm/pool/pool-types.ts'
import type { LogFilter } from './check-filter.ts'
import { toNumber } from './encodings.ts'
import { type NodeTag, nodeTagsOf } from './log-range.ts'
import type { Method } from './methods.ts'
import { isNull } from './node-errors.ts'

/** The numbers of the tags of a filter, or why there are none. */
export type ResolvedTags =
  | { numbers: ReadonlyMap<string, number> }
  | { error: RawJson }
  | { failure: PoolFailure }

type Resolved = { number: number } | { error: RawJson } | { failure: PoolFailure }

/** Finds the blocks that `safe` and `finalized` stand for. */
export type NodeTags = { resolve(method: Method, filter: LogFilter): Promise<ResolvedTags> }

/** Asks once per head. */
export function createNodeTags({
  pool,
  view,
  timeoutMs,
}: {
  pool: Pool
  view: Pick<Canonical, 'head'>
  timeoutMs: number
}): NodeTags {
  // Two tags, so at most two entries.
  const known = new Map<NodeTag, { head: string | undefined; resolved: Promise<Resolved> }>()

  const ask = async (method: string, tag: NodeTag): Promise<Resolved> => {
    const outcome = await pool.request({
      method,
      params: `["${tag}",false]`,
      idempotent: true,
      timeoutMs,
      isUseless: isNull,
    })
    if ('failure' in outcome) return outcome
    if (!outcome.ok) return { error: outcome.error }
    const number = /"number": ?"(0x[0-9a-f]{1,13})"/.exec(outcome.result)?.[1]
    // As geth says it before the chain has such a block.
    if (number === undefined) return { error: `{"code":-32000,"message":"${tag} block not found"}` }
    return { number: toNumber(number) }
  }

  const find = async (method: string, tag: NodeTag): Promise<Resolved> => {
    // `safe` and `finalized` move with heads only: one question per head serves all clients.
    const head = view.head()?.hash
    const last = known.get(tag)
    if (last && head !== undefined && last.head === head) return last.resolved
    const entry = { head, resolved: ask(method, tag) }
    known.set(tag, entry)
    const resolved = await entry.resolved
    // An error is not kept for others.
    if (!('number' in resolved) && known.get(tag) === entry) known.delete(tag)
    return resolved
  }

  return {
    async resolve({ name }, filter) {
      const numbers = new Map<string, number>()
      for (const tag of new Set(nodeTagsOf(filter))) {
        const resolved = await find(name.replace(/getLogs$/, 'getBlockByNumber'), tag)
        if (!('number' in resolved)) return resolved
        numbers.set(tag, resolved.number)
      }
      return { numbers }
    },
  }
}
