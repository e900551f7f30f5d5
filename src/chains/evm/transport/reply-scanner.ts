import { skipSpace, skipString, skipValue, startsWith } from './json-skip.ts'

/** One answer found in a text: where its result or error stands, and where the answer ends. */
export type ScannedReply = {
  /** -1 when it carries no number: null, text, or none at all. */
  id: number
  ok: boolean
  from: number
  to: number
  end: number
}

const usualStart = Buffer.from('{"jsonrpc":"2.0","id":')
const usualResult = Buffer.from(',"result":')

/**
 * Finds id and result or error of the JSON-RPC answer that begins at `start`, without building the
 * values. Undefined when it is no whole and unambiguous answer.
 */
export function scanReply(text: Buffer, start = 0): ScannedReply | undefined {
  return (
    (startsWith(text, start, usualStart) ? scanUsual(text, start) : undefined) ??
    scanAnyOrder(text, start)
  )
}

/** A whole body that holds one answer and nothing else. */
export function scanOneReply(text: Buffer): ScannedReply | undefined {
  const reply = scanReply(text, skipSpace(text, 0))
  return reply && skipSpace(text, reply.end) === text.length ? reply : undefined
}

/** A whole body that holds an array of answers. */
export function scanBatch(text: Buffer): ScannedReply[] | undefined {
  let at = skipSpace(text, 0)
  if ((text[at] as number) !== 0x5b) return undefined
  const replies: ScannedReply[] = []
  for (let separator = 0x2c; separator === 0x2c; separator = text[at] as number) {
    const reply = scanReply(text, skipSpace(text, at + 1))
    if (!reply) return undefined
    replies.push(reply)
    at = skipSpace(text, reply.end)
  }
  const isWhole = (text[at] as number) === 0x5d && skipSpace(text, at + 1) === text.length
  return isWhole ? replies : undefined
}

/**
 * Puts the answers of a batch into the order of the calls. Undefined when not each call has exactly
 * one: then nobody could say whether the others have been mixed up as well.
 */
export function matchReplies(ids: number[], replies: ScannedReply[]): ScannedReply[] | undefined {
  if (replies.length !== ids.length) return undefined
  const matched: ScannedReply[] = []
  for (const [position, reply] of replies.entries()) {
    const index = ids[position] === reply.id ? position : ids.indexOf(reply.id)
    if (index < 0 || matched[index]) return undefined
    matched[index] = reply
  }
  return matched
}

// The order and spelling that almost every node uses; whatever differs goes the general way.
function scanUsual(text: Buffer, start: number): ScannedReply | undefined {
  const idAt = start + usualStart.length
  let at = idAt
  let id = 0
  for (let char = text[at] as number; char >= 0x30 && char <= 0x39; char = text[at] as number) {
    id = id * 10 + char - 0x30
    at++
  }
  if (at === idAt || at - idAt > 15 || !startsWith(text, at, usualResult)) return undefined
  const from = at + usualResult.length
  const to = skipValue(text, from)
  if (to < 0 || (text[to] as number) !== 0x7d) return undefined
  return { id, ok: true, from, to, end: to + 1 }
}

type Found = { from: number; to: number }

function scanAnyOrder(text: Buffer, start: number): ScannedReply | undefined {
  if ((text[start] as number) !== 0x7b) return undefined
  const members: { id?: Found; result?: Found; error?: Found; jsonrpc?: Found } = {}
  let at = skipSpace(text, start + 1)
  if ((text[at] as number) === 0x7d) return undefined
  for (;;) {
    const keyEnd = skipString(text, at)
    if (keyEnd < 0) return undefined
    const key = JSON.parse(text.toString('latin1', at, keyEnd))
    const colon = skipSpace(text, keyEnd)
    if ((text[colon] as number) !== 0x3a) return undefined
    const from = skipSpace(text, colon + 1)
    const to = skipValue(text, from)
    if (to < 0) return undefined
    if (key === 'id' || key === 'result' || key === 'error' || key === 'jsonrpc') {
      // Two readers could disagree about which of two equal keys counts.
      if (members[key as keyof typeof members]) return undefined
      members[key as keyof typeof members] = { from, to }
    }
    at = skipSpace(text, to)
    const separator = text[at] as number
    if (separator === 0x7d) return judge(text, members, at + 1)
    if (separator !== 0x2c) return undefined
    at = skipSpace(text, at + 1)
  }
}

function judge(
  text: Buffer,
  members: { id?: Found; result?: Found; error?: Found },
  end: number,
): ScannedReply | undefined {
  const { result } = members
  // Servers of JSON-RPC 1.0 send both keys, one of them null.
  const error = members.error && !isNull(text, members.error) ? members.error : undefined
  if (error) {
    if ((text[error.from] as number) !== 0x7b || (result && !isNull(text, result))) return undefined
    return { id: idOf(text, members.id), ok: false, from: error.from, to: error.to, end }
  }
  return result && { id: idOf(text, members.id), ok: true, from: result.from, to: result.to, end }
}

const isNull = (text: Buffer, { from }: Found) => (text[from] as number) === 0x6e

function idOf(text: Buffer, found: Found | undefined): number {
  if (!found) return -1
  const first = text[found.from] as number
  return first >= 0x30 && first <= 0x39 ? Number(text.toString('latin1', found.from, found.to)) : -1
}
