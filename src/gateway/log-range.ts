import type { Head, RawJson } from '../chains/upstream/pool-types.ts'
import type { LogFilter } from './check-filter.ts'
import { isQuantity, toNumber, toQuantity } from './encodings.ts'
import { type Refusal, refuse } from './rpc-error.ts'

/** The refusal that names how much may be asked for. */
export const rangeTooLarge = (maxRange: number, from: number): Refusal =>
  refuse('LOG_RANGE_TOO_LARGE', `At most ${maxRange} blocks can be asked for at once.`, {
    max_range: maxRange,
    from_block: toQuantity(from),
    to_block: toQuantity(from + maxRange - 1),
  })

/** The height that a block of a filter stands for; -1 where only a node can tell. */
export function heightOf(block: string | null | undefined, head: Head): number {
  if (block == null || block === 'latest') return head.number
  if (block === 'earliest') return 0
  return isQuantity(block) ? toNumber(block) : -1
}

/** The params of a filter over a range, whatever it named before. */
export const ranged = (
  { blockhash: _, blockHash: __, ...filter }: LogFilter,
  from: number,
  to: number,
): RawJson => JSON.stringify([{ ...filter, fromBlock: toQuantity(from), toBlock: toQuantity(to) }])

/** The params in the spelling that nodes know; as they came where that is the same. */
export function written({ blockhash, ...filter }: LogFilter, params: RawJson): RawJson {
  if (blockhash === undefined) return params
  return JSON.stringify([blockhash === null ? filter : { ...filter, blockHash: blockhash }])
}
