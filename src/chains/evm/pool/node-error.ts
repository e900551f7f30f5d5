import type { RawJson } from './pool-types.ts'

/** What an error of a node means for the call. */
export type ErrorMeaning =
  /** It is the answer, as any other node would give it. */
  | 'answer'
  /** This node does not have or cannot do it now; another may. */
  | 'useless'
  | 'lacks_method'
  | 'rate_limited'

/** What a node does not have. */
export type Lack = 'block' | 'state'

type Row = {
  means: ErrorMeaning
  lacks?: Lack
  codes?: readonly number[]
  words?: RegExp
  /** The words count under these codes only. */
  under?: readonly number[]
}

/**
 * Codes of errors about the request or the execution of a contract: their text repeats parameters and
 * revert reasons, so it never says anything about the node. 3: revert (geth, Erigon, Reth); -32602 and
 * -32700: the request (JSON-RPC 2.0); -32003: the transaction (EIP-1474); -32015: the EVM (Nethermind,
 * Conflux, RSK). The errors of eth_simulateV1 (execution-apis) are -38000 and below.
 */
const answerCodes: ReadonlySet<number> = new Set([3, -32602, -32700, -32003, -32015])
const isAnswerCode = (code: number): boolean =>
  answerCodes.has(code) || (code <= -38_000 && code >= -38_999)

/** Reverts under other codes: Besu and Ganache use -32000, Hardhat and Frontier -32603. */
const execution = /revert|VM (?:exception|execution)|execution (?:aborted|timeout)/i

/**
 * Whole texts under the code of wrong parameters. Nothing in them can come from a request. anvil sends
 * the first for blocks that it does not have. It sends the second over WebSocket, both for unknown
 * methods and for wrong parameters.
 */
const outOfRange = /^BlockOutOfRangeError: block height is \d+ but requested was \d+$/
const noVariant = /^data did not match any variant of untagged enum \w+$/
/** geth and Nimbus: a range of getLogs that ends after the head of this node. */
const beyondHead = /^block range extends beyond current head block$/

const limitWords =
  /rate.?limit|request rate|too many requests|requests? (?:per \w+|limit|count)|compute units|throughput|^(?:request )?limit exceeded\W*$|(?:daily|monthly|hourly|credits?|quota)\b.{0,40}(?:limit(?:ed)?|exceed|reached|exhausted)|exceeded .{0,40}(?:quota|requests)/i

/**
 * The first row that fits decides; an error that fits none is an answer, but an unexplained one. Codes and words of geth,
 * Erigon, Nethermind, Besu, Reth, anvil and of the hosted services.
 */
const rows: readonly Row[] = [
  {
    means: 'useless',
    lacks: 'block',
    words: /beyond (?:the )?(?:current|latest) (?:head|executed)/i,
  },
  // Too many blocks or logs. Besu and Nethermind use -32005 for this, the code of many rate limits.
  {
    means: 'answer',
    words:
      /more than \d+ (?:results|logs)|too many (?:logs|results|blocks)|block range|ranges? (?:over|exceeds|(?:is )?too (?:large|wide))|max(?:imum)? (?:block )?(?:range|results)|limited to (?:a )?\d+(?![\d/])|response size/i,
  },
  // A rate limit cools the node down for all callers, so that it is known by codes alone, or by words under
  // codes that no call can bring about. 429: Alchemy (github.com/latticexyz/mud/issues/1522); -32007:
  // QuickNode (github.com/EspressoSystems/espresso-network/pull/4838); -32029: TheRPC
  // (github.com/reown-com/blockchain-api/pull/1102); -32605: docs.blockvision.org; -32016: the public nodes of
  // Base (github.com/base/node/issues/368). -32005, -32007 and -32016 alone say nothing: Besu refuses senders
  // that are not permitted with -32007 (its RpcErrorType), EIP-1474 and Infura limit with -32005, Besu refuses
  // ranges, eth_simulateV1 has fees and time limits there. QuickNode sends -32012 for credits (mud 1522), Goldsky for ranges (docs.goldsky.com).
  {
    means: 'rate_limited',
    codes: [429, -32029, -32605],
    under: [-32005, -32007, -32012, -32016],
    words: limitWords,
  },
  // Under codes that serve for everything the same words only mean that another node may answer this call.
  { means: 'useless', words: limitWords },
  {
    means: 'lacks_method',
    codes: [-32601, -32004],
    words:
      /method .{0,100}(?:not found|not supported|not available|does not exist|not whitelisted|not allowed|disabled)|unsupported method|unknown method/i,
  },
  {
    means: 'useless',
    lacks: 'block',
    codes: [-32001],
    words:
      /(?:header|block|resource)\b.{0,80}(?:not (?:be )?(?:found|available)|does not exist)|(?:unknown|missing|future) (?:block|header)|could not find block|(?:block|height)\b.{0,60}out of ?range|BlockOutOfRange|unfinalized data/i,
  },
  {
    means: 'useless',
    lacks: 'state',
    codes: [4444],
    words:
      /missing trie node|state\b.{0,80}(?:not (?:found|available)|unavailable|missing|pruned)|historical (?:state|data|backend)|prun(?:ed|ing)|no state available|no historical RPC|proof window|ancient|(?:history|old data)\b.{0,40}(?:unavailable|not available)|out of range/i,
  },
  // The node is still syncing, or has an internal error.
  {
    means: 'useless',
    codes: [-32002],
    words:
      /syncing|not (?:yet )?synced|not synchronized|indexing is in progress|timed? ?out|deadline exceeded|overloaded|temporarily|service unavailable|try again|bad gateway|connection (?:refused|reset)|no (?:available|healthy) (?:upstream|backend|node)s?|shutting down/i,
  },
]

const answer: Row = { means: 'answer' }
const unexplained: Row = { means: 'answer' }
const noSuchBlock: Row = { means: 'useless', lacks: 'block' }
const noMethod: Row = { means: 'lacks_method' }

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

/**
 * What the error that a node answered means for the call. Words count only where they are the node's own:
 * not in errors about the request or of a contract, not in quotes, and not when they are in the params.
 */
export const meaningOf = (error: RawJson, params?: RawJson): ErrorMeaning =>
  rowOf(error, params).means

/**
 * Whether nothing says what the error is about: neither its code nor words that any client is known for. A call that
 * runs no code of contracts and holds no words of its caller has not brought it about.
 */
export const isUnexplained = (error: RawJson, params?: RawJson): boolean =>
  rowOf(error, params) === unexplained

/** What the node said that it does not have, undefined where the error is about something else. */
export const lackOf = (error: RawJson, params?: RawJson): Lack | undefined =>
  rowOf(error, params).lacks

/** Whether the words are those of a contract, which may say anything. */
export const isExecutionError = (error: RawJson): boolean => {
  const { code, message } = readError(error)
  return code === 3 || code === -32015 || execution.test(message)
}

/** Whether it is certain that the method is the reason, and not its parameters. */
export const isSurelyUnknownMethod = (error: RawJson): boolean =>
  meaningOf(error) === 'lacks_method' && readError(error).code !== -32602

function rowOf(error: RawJson, params: RawJson | undefined): Row {
  const { code, message } = readError(error)
  if (code === -32602) {
    if (outOfRange.test(message) || beyondHead.test(message)) return noSuchBlock
    return noVariant.test(message) ? noMethod : answer
  }
  if (isAnswerCode(code) || execution.test(message)) return answer
  const own = message.replace(quoted, ' ')
  return (
    rows.find(
      ({ codes, words, under }) =>
        codes?.includes(code) || ((under?.includes(code) ?? true) && fits(words, own, params)),
    ) ?? unexplained
  )
}

const quoted = /"[^"]*"|`[^`]*`|'[^']*'/g

function fits(words: RegExp | undefined, message: string, params: RawJson | undefined): boolean {
  const match = words?.exec(message)
  return match != null && !holds(params, match[0])
}

/** Beyond that params with escapes are not read: it is their own call whose error then is an answer. */
const maxEscapedParams = 100_000

/** Compared as values where the params may spell the same text with escapes. */
function holds(params: RawJson | undefined, words: string): boolean {
  if (params === undefined || params === '[]') return false
  if (!params.includes('\\')) return params.toLowerCase().includes(words.toLowerCase())
  if (params.length > maxEscapedParams) return true
  try {
    return JSON.stringify(JSON.parse(params)).toLowerCase().includes(words.toLowerCase())
  } catch {
    return true
  }
}
