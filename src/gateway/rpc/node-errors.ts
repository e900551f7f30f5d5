import { lackOf, meaningOf, readError } from '../../chains/evm/pool/node-error.ts'
import type { RawJson, RpcReply } from '../../chains/evm/pool/pool-types.ts'

const refusedRange =
  /range|too (?:many|large|big|wide|long)|more than|limit|exceed|response size|time ?d? ?out|narrow|reduce/i
// geth: a range that runs backwards, or beside a hash. Parts of it would be as wrong.
const wrongRange = /invalid (?:block )?range|cannot specify both/i
const noUncle = /uncle\b.{0,60}(?:not (?:be )?found|out of ?range|does not exist)/i

/** The node does not have the block that was asked for. */
export const isMissingBlock = (error: RawJson): boolean =>
  lackOf(error) === 'block' || noUncle.test(readError(error).message)

/** The node refuses so many blocks or logs at once. A filter is hex: no word of it is the caller's. */
export const isRefusedRange = (error: RawJson): boolean => {
  const { message } = readError(error)
  return refusedRange.test(message) && !wrongRange.test(message) && lackOf(error) === undefined
}

/** The node does not offer the method; its parameters were checked. */
export const isUnknownMethod = (error: RawJson): boolean => meaningOf(error) === 'lacks_method'

/** An answer about a block that is in the chain, from a node that does not have it. */
export const isNull = (reply: RpcReply): boolean => reply.ok && reply.result === 'null'
