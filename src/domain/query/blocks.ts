import { toBlock } from '../../chains/evm/block/records.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { QueryHandler } from '../context.ts'
import { presented, readBlock } from './read.ts'
import { sourceOf } from './source.ts'

/** Reads a block of the chain by its number. */
export const GetBlock: QueryHandler<'GetBlock'> = async (context, { block_number }) => {
  const raw = await readBlock(context, block_number)
  if (raw) return { block: presented(() => toBlock(raw)) }
  const head = sourceOf(context).pool.head()?.number
  const isAhead = head !== undefined && block_number > head
  throw new OperationError(
    'BLOCK_NOT_FOUND',
    isAhead ? { detail: `The newest block is ${head}.` } : {},
  )
}
