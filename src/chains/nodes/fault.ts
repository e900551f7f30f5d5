/** What went wrong with a call to one node; it decides what happens to the node and to the question. */
export type FaultKind =
  /** No answer, or a broken connection. The node is unreachable and backs off. */
  | 'down'
  /** The node answered with an error of its own. It backs off. */
  | 'failed'
  /** Too many requests. The node's rate gate closes. */
  | 'busy'
  /** The node has not reached the block yet. */
  | 'behind'
  /** The node does not have the data, or has pruned it. */
  | 'missing'
  /** The node understood the question and does not answer it. */
  | 'refused'
  /** The answer cannot be true. The node is distrusted. */
  | 'invalid'

const longestReason = 500

// Nodes repeat what strangers chose, and a reason may be stored with a gap: PostgreSQL has no text with a NUL in it.
const cleanReason = (message: string): string =>
  message
    .slice(0, longestReason)
    .replace(/\p{Cc}/gu, ' ')
    .toWellFormed()

/** A call to one node failed; another node may answer. */
export class NodeFault extends Error {
  override name = 'NodeFault'
  readonly kind: FaultKind
  /** From `Retry-After`, with `busy`. */
  readonly retryAfterMs: number | undefined
  constructor(kind: FaultKind, message: string, retryAfterMs?: number) {
    super(cleanReason(message))
    this.kind = kind
    this.retryAfterMs = retryAfterMs
  }
}

/** Milliseconds of a `Retry-After`, given as seconds or as a date. */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
