import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { filterHash, type LogFilter } from './check-filter.ts'
import { isQuantity, toNumber, toQuantity } from './encodings.ts'
import { type Refusal, refuse } from './rpc-error.ts'

/** The refusal that names how much may be asked for. */
export const rangeTooLarge = (maxRange: number, from: number): Refusal =>
  refuse('LOG_RANGE_TOO_LARGE', `At most ${maxRange} blocks can be asked for at once.`, {
    max_range: maxRange,
    from_block: toQuantity(from),
    to_block: toQuantity(from + maxRange - 1),
  })

/** A block of a filter that only a node can turn into a number. */
export type NodeTag = 'safe' | 'finalized'

/** The tags of a filter that a node has to resolve. */
export const nodeTagsOf = ({ fromBlock, toBlock }: LogFilter): NodeTag[] =>
  [fromBlock, toBlock].filter(
    (block): block is NodeTag => block === 'safe' || block === 'finalized',
  )

/** The height that a block of a filter stands for; -1 where the head is not known. */
export function heightOf(block: string | null | undefined, head: number): number {
  if (block === 'earliest') return 0
  if (block === 'pending') return head < 0 ? -1 : head + 1
  return isQuantity(block) ? toNumber(block) : head
}

/** Whether a filter names both a block and a range: nodes say what is wrong with that. */
export const isContradictory = (filter: LogFilter): boolean =>
  filterHash(filter) !== undefined &&
  (filter.fromBlock ?? filter.toBlock ?? undefined) !== undefined

/** The params of a filter over a range, whatever it named before. */
export const ranged = (
  { blockhash: _, blockHash: __, ...filter }: LogFilter,
  from: number,
  to: number,
): RawJson => JSON.stringify([{ ...filter, fromBlock: toQuantity(from), toBlock: toQuantity(to) }])

/** The params in the spelling that nodes know; as they came where that is the same. */
export function written(
  given: LogFilter,
  { blockhash, ...filter }: LogFilter,
  params: RawJson,
  isSame: boolean,
): RawJson {
  if (isSame && given.blockhash === undefined) return params
  return JSON.stringify([blockhash == null ? filter : { ...filter, blockHash: blockhash }])
}
