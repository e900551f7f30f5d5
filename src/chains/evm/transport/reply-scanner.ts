// Finds the parts of JSON-RPC replies that are forwarded, without building their values. Positions in the
// text are positions in the body: one character per byte.
//
// Measured gain (Node 26, CPU time): a small reply takes 0.35 µs; `JSON.parse` and `JSON.stringify` of its result take 0.68 µs. A block of
// 127 KB takes 0.25 to 0.45 ms against 0.43 to 0.52 ms, and its text stays as the node wrote it.

import {
  type JsonText,
  jsonText,
  readString,
  scanInTurns,
  scanObject,
  skipSpace,
  skipValue,
} from '../../../lib/json/scan.ts'

/** One reply found in a body: where its result or error is, and where the reply ends. */
export type ScannedReply = {
  /** -1 when it has no numeric id: null, text, or none at all. */
  id: number
  ok: boolean
  from: number
  to: number
  end: number
}

const usualStart = '{"jsonrpc":"2.0","id":'
const usualResult = ',"result":'

const scanReply = (json: JsonText, start: number): ScannedReply | undefined =>
  (json.text.startsWith(usualStart, start) ? scanUsual(json, start) : undefined) ??
  scanAnyOrder(json, start)

/** A reply, and the text of its result or error. */
export type OneReply = ScannedReply & { raw: string }

/** `TransportCall.isWhole` of the call with this id, where it has one. */
export type WholeOf = (id: number) => ((result: string) => boolean) | undefined

/** A whole body that holds one reply and nothing else; undefined when it is incomplete or ambiguous. */
export function scanOneReply(body: Buffer, wholeOf?: WholeOf): OneReply | undefined {
  const text = body.toString('latin1')
  return (wholeOf && readParsed(text, wholeOf)) ?? scanOnly(jsonText(text))
}

/** Longer replies are scanned in parts. */
const longReply = 524_288
/** What is written before the result, in the order of most nodes and in that of Nethermind (its `JsonRpcResponse.cs`). */
const beforeResult = /^\{"jsonrpc":"2\.0",(?:"id":\d{1,15},)?"result":/

/** The same. A long reply is scanned in several turns of the event loop, so that it delays no other call for long. */
export function scanOneReplyInTurns(
  body: Buffer,
  wholeOf: WholeOf | undefined,
  done: (reply: OneReply | undefined) => void,
): void {
  if (body.length <= longReply) {
    done(scanOneReply(body, wholeOf))
    return
  }
  const text = body.toString('latin1')
  const parsed = wholeOf && readParsed(text, wholeOf)
  const start = beforeResult.exec(text.slice(0, 64))?.[0].length
  if (parsed || start === undefined) done(parsed ?? scanOnly(jsonText(text)))
  else scanInTurns(text, start, (json) => done(scanOnly(json)))
}

function scanOnly(json: JsonText): OneReply | undefined {
  const { text } = json
  const reply = scanReply(json, skipSpace(text, 0))
  if (!reply || skipSpace(text, reply.end) !== text.length) return undefined
  const { id, ok, from, to, end } = reply
  // A part of the text, which is hardly longer: to cut it from the bytes would be a call out of compiled code.
  return { id, ok, from, to, end, raw: text.slice(from, to) }
}

/** A whole body that holds an array of replies. */
export function scanBatch(body: Buffer): ScannedReply[] | undefined {
  const json = jsonText(body.toString('latin1'))
  const { text } = json
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== 0x5b) return undefined
  const replies: ScannedReply[] = []
  for (let separator = 0x2c; separator === 0x2c; separator = text.charCodeAt(at)) {
    const reply = scanReply(json, skipSpace(text, at + 1))
    if (!reply) return undefined
    replies.push(reply)
    at = skipSpace(text, reply.end)
  }
  const isWhole = text.charCodeAt(at) === 0x5d && skipSpace(text, at + 1) === text.length
  return isWhole ? replies : undefined
}

/**
 * Puts the answers of a batch into the order of the calls. Undefined when not each call has exactly
 * one: then the other answers may be mixed up as well.
 */
export function matchReplies(ids: number[], replies: ScannedReply[]): ScannedReply[] | undefined {
  if (replies.length !== ids.length) return undefined
  const matched: ScannedReply[] = []
  for (let position = 0; position < replies.length; position++) {
    const reply = replies[position]!
    const index = ids[position] === reply.id ? position : ids.indexOf(reply.id)
    if (index < 0 || matched[index]) return undefined
    matched[index] = reply
  }
  return matched
}

// The order and spelling that almost every node uses; all others take the general way.
function scanUsual(json: JsonText, start: number): ScannedReply | undefined {
  const { text } = json
  const idEnd = endOfUsualId(text, start)
  if (idEnd < 0) return undefined
  const from = idEnd + usualResult.length
  const to = skipValue(json, from)
  if (to < 0 || text.charCodeAt(to) !== 0x7d) return undefined
  return { id: idAt(text, start + usualStart.length, idEnd), ok: true, from, to, end: to + 1 }
}

/** The same for a result that the caller parses: behind it nothing can follow, or it would not be one value. */
function readParsed(text: string, wholeOf: WholeOf): OneReply | undefined {
  if (!text.startsWith(usualStart)) return undefined
  const idEnd = endOfUsualId(text, 0)
  let end = text.length
  while (text.charCodeAt(end - 1) === 0x0a) end--
  const from = idEnd + usualResult.length
  const to = end - 1
  if (idEnd < 0 || to <= from || text.charCodeAt(to) !== 0x7d) return undefined
  const id = idAt(text, usualStart.length, idEnd)
  const isWhole = wholeOf(id)
  // With spaces around it the general way cuts the result.
  if (!isWhole || text.charCodeAt(from) <= 0x20 || text.charCodeAt(to - 1) <= 0x20) return undefined
  const raw = text.slice(from, to)
  return isWhole(raw) ? { id, ok: true, from, to, end, raw } : undefined
}

/** Where the id of a reply ends that is written as usual; -1 when it is not. */
function endOfUsualId(text: string, start: number): number {
  const from = start + usualStart.length
  let at = from
  for (let char = text.charCodeAt(at); char >= 0x30 && char <= 0x39; char = text.charCodeAt(at))
    at++
  return at === from || at - from > 15 || !text.startsWith(usualResult, at) ? -1 : at
}

function idAt(text: string, from: number, to: number): number {
  let id = 0
  for (let at = from; at < to; at++) id = id * 10 + text.charCodeAt(at) - 0x30
  return id
}

type Found = { from: number; to: number }
type Members = { id?: Found; result?: Found; error?: Found; jsonrpc?: Found }

function scanAnyOrder(json: JsonText, start: number): ScannedReply | undefined {
  const members: Members = {}
  const end = scanObject(json, start, (name, from, to) => {
    const key = readString(name)
    if (key !== 'id' && key !== 'result' && key !== 'error' && key !== 'jsonrpc') return true
    // Two readers could disagree about which of two equal keys counts.
    if (members[key]) return false
    members[key] = { from, to }
    return true
  })
  return end < 0 ? undefined : judge(json.text, members, end)
}

function judge(text: string, members: Members, end: number): ScannedReply | undefined {
  const { result } = members
  // Servers of JSON-RPC 1.0 send both keys, one of them null.
  const error = members.error && !isNull(text, members.error) ? members.error : undefined
  if (error) {
    if (text.charCodeAt(error.from) !== 0x7b || (result && !isNull(text, result))) return undefined
    return { id: idOf(text, members.id), ok: false, from: error.from, to: error.to, end }
  }
  return result && { id: idOf(text, members.id), ok: true, from: result.from, to: result.to, end }
}

const isNull = (text: string, { from }: Found): boolean => text.charCodeAt(from) === 0x6e

function idOf(text: string, found: Found | undefined): number {
  if (!found) return -1
  const first = text.charCodeAt(found.from)
  return first >= 0x30 && first <= 0x39 ? Number(text.slice(found.from, found.to)) : -1
}
