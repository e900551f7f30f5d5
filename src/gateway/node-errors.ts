import type { RawJson, RpcReply } from '../chains/upstream/pool-types.ts'

// Nodes agree on few codes, so that what an error means is read from its words.

const missingBlock =
  /(?:block|header|height|uncle)[^"]{0,60}(?:not (?:be )?found|out ?of ?range|beyond|exist|missing|requested was)|(?:unknown|missing|future) (?:block|header|uncle)|BlockOutOfRange|resource not found/i
const prunedState =
  /missing trie node|state[^"]{0,40}(?:not available|unavailable|pruned|not found|missing)|pruned|historical (?:state|data)|BlockOutOfRange|header not found|unknown block|block not found|"code": ?4444\b/i
const refusedRange =
  /range|too (?:many|large|big|wide|long)|more than|limit|exceed|response size|time ?d? ?out|narrow|reduce/i
const unknownMethod = /"code": ?-32601\b/

/** The node does not have the block that was asked for. */
export const isMissingBlock = (error: RawJson): boolean => missingBlock.test(error)

/** The node does not have the state of the block any more, or not yet. */
export const isPrunedState = (error: RawJson): boolean => prunedState.test(error)

/** The node refuses so many blocks or logs at once. */
export const isRefusedRange = (error: RawJson): boolean =>
  refusedRange.test(error) && !missingBlock.test(error)

/** The node does not offer the method. */
export const isUnknownMethod = (error: RawJson): boolean => unknownMethod.test(error)

/** An answer about a block that is in the chain, from a node that does not have it. */
export const lacksBlock = (reply: RpcReply): boolean =>
  reply.ok ? reply.result === 'null' : lacksMethod(reply) || isMissingBlock(reply.error)

/** An answer about the state of a block that is in the chain, from a node that lost it. */
export const lacksState = (reply: RpcReply): boolean =>
  !reply.ok && (lacksMethod(reply) || isPrunedState(reply.error))

/** An answer from a node that does not offer the method, though another may. */
export const lacksMethod = (reply: RpcReply): boolean => !reply.ok && isUnknownMethod(reply.error)
