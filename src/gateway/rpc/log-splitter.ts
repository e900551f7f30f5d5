import type { Pool, PoolOutcome, PoolRequest, RawJson } from '../../chains/evm/pool/pool-types.ts'
import type { LogFilter } from './check-filter.ts'
import { ranged, rangeTooLarge } from './log-range.ts'
import { isRefusedRange } from './node-errors.ts'

/** Asks for a range in parts that nodes accept, and joins what they say. */
export type SplitLogs = (
  request: PoolRequest,
  filter: LogFilter,
  from: number,
  to: number,
) => Promise<PoolOutcome>

/** Makes the splitter; everything that it does is bounded. */
export function createLogSplitter(options: {
  pool: Pool
  timeoutMs: number
  now(): number
  maxRequests?: number
  maxBytes?: number
  atOnce?: number
}): SplitLogs {
  const { pool, now, timeoutMs } = options
  const { maxRequests = 256, maxBytes = 33_554_432, atOnce = 4 } = options

  return async (request, filter, from, to) => {
    const deadline = now() + 3 * timeoutMs
    const parts: RawJson[] = []
    // The whole range was refused before: the first parts are halves.
    let size = Math.ceil((to - from + 1) / 2)
    let position = from
    let requests = 0
    let bytes = 0
    while (position <= to) {
      const starts: number[] = []
      for (let start = position; start <= to && starts.length < atOnce; start += size)
        starts.push(start)
      requests += starts.length
      if (requests > maxRequests || bytes > maxBytes || now() > deadline)
        return { ok: false, error: rangeTooLarge(Math.max(1, position - from), from).error }
      const width = size
      const outcomes = await Promise.all(
        starts.map((start) =>
          pool.request({
            ...request,
            params: ranged(filter, start, Math.min(to, start + width - 1)),
          }),
        ),
      )
      for (const outcome of outcomes) {
        if ('failure' in outcome) return outcome
        if (!outcome.ok) {
          if (width === 1 || !isRefusedRange(outcome.error)) return outcome
          size = Math.ceil(width / 2)
          // Answers after the refused part are dropped: the next round begins where a part is missing.
          break
        }
        bytes += outcome.result.length
        parts.push(outcome.result)
        position += width
      }
    }
    return { ok: true, result: join(parts) }
  }
}

/** The elements of all arrays in one. */
function join(arrays: readonly RawJson[]): RawJson {
  const inner = arrays.map((array) => array.trim().slice(1, -1).trim()).filter(Boolean)
  return `[${inner.join(',')}]`
}
