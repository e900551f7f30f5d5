import type { RawJson } from './pool-types.ts'

/** What an error of a node means for the call. */
export type ErrorMeaning =
  /** It is the answer, as any other node would give it. */
  | 'answer'
  /** This node does not have or cannot do it now; another may. */
  | 'useless'
  | 'lacks_method'
  | 'rate_limited'

type Row = { means: ErrorMeaning; codes?: number[]; message?: RegExp }

/**
 * The first row that fits decides; an error that fits none is an answer. Codes and words of geth,
 * Erigon, Nethermind, Besu, Reth, anvil and of the hosted services.
 */
const rows: Row[] = [
  // What a contract says in its revert reason must not be mistaken for the node's own words.
  {
    means: 'answer',
    codes: [3],
    message: /^(?:Error: )?(?:execution reverted|VM Exception|VM execution error|revert)/i,
  },
  // Some services use the code of their rate limit for logs that are too many.
  {
    means: 'answer',
    message:
      /more than \d+ (?:results|logs)|block range|range (?:is )?too (?:large|wide)|max(?:imum)? (?:block )?range|limited to (?:a )?\d+/i,
  },
  {
    means: 'rate_limited',
    codes: [429, -32005, -32007, -32016, -32029, -32097],
    message:
      /rate.?limit|too many requests|request limit|limit exceeded|exceeded .*(?:capacity|quota|limit)|compute units|throughput/i,
  },
  {
    means: 'lacks_method',
    codes: [-32601, -32004],
    message:
      /method .*(?:not found|not supported|not available|does not exist|not whitelisted|not allowed|disabled)|unsupported method|unknown method/i,
  },
  // State or history that this node has thrown away, or a block that it does not have yet.
  {
    means: 'useless',
    codes: [4444, -32001],
    message:
      /header not found|missing trie node|unknown block|block .*not (?:found|available)|could not find block|state .*(?:not available|unavailable|missing)|historical (?:state|backend)|prun(?:ed|ing)|BlockOutOfRange|out of range|no state available|no historical RPC|proof window|ancient|history .*unavailable/i,
  },
  // Still catching up, or in trouble of its own.
  {
    means: 'useless',
    codes: [-32002],
    message:
      /syncing|not (?:yet )?synced|not synchronized|timed? ?out|deadline exceeded|overloaded|temporarily|service unavailable|try again|bad gateway|connection (?:refused|reset)|no (?:available|healthy) (?:upstream|backend|node)s?|shutting down/i,
  },
]

/** The code and the message of an error object; empty where they are missing. */
export function readError(error: RawJson): { code: number; message: string } {
  try {
    const { code, message } = JSON.parse(error)
    return { code: Number(code), message: typeof message === 'string' ? message : '' }
  } catch {
    return { code: Number.NaN, message: '' }
  }
}

/** What a node gives with an error, such as the words of a contract. */
export function readErrorData(error: RawJson): unknown {
  try {
    return JSON.parse(error).data
  } catch {
    return undefined
  }
}

/** What the error that a node answered means for the call. */
export function meaningOf(error: RawJson): ErrorMeaning {
  const { code, message } = readError(error)
  const row = rows.find((row) => row.codes?.includes(code) || row.message?.test(message))
  return row?.means ?? 'answer'
}
