// Reads JSON-RPC envelopes. The text of the params is passed on to nodes as it came; the parsed values serve the checks of
// the method. The usual form of a request is recognized by its beginning; any other form takes the general scanner.

import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import {
  type JsonText,
  jsonText,
  measureJson,
  readString,
  scanArray,
  scanObject,
  skipSpace,
  skipValue,
} from '../../lib/json/scan.ts'
import { type Refusal, refuse } from './rpc-error.ts'

/** One call as it came. */
export type RpcCall = {
  /** The text of the id, to be given back byte for byte; undefined for a notification. */
  id: RawJson | undefined
  method: string
  /** The text of the params, an array. */
  params: RawJson
  args: readonly unknown[]
  /** Why this is not a call; the other members mean nothing then. */
  refusal: Refusal | undefined
}

/** What a body holds. */
export type Envelope =
  | { batch: boolean; calls: RpcCall[]; refusal: undefined }
  /** Nothing in the body can be answered by itself: one error with the id null. */
  | { batch: false; calls: []; refusal: Refusal }

/**
 * Reads bodies: one character per byte, known to be UTF-8. With `isGlance` params are passed over and not
 * parsed: enough to refuse the calls by their ids.
 */
export type ReadEnvelope = (body: RawJson, isGlance?: boolean) => Envelope

/** How deep a body may be nested. The deepest parameters of any method have about ten levels. */
export const maxDepth = 64

const noArgs: readonly unknown[] = []
const malformed = refuse('INVALID_JSON', 'The body is not valid JSON.')
/** Why a body is refused that is nested too deep. */
export const tooDeep: Refusal = refuse(
  'INVALID_JSON',
  `The body is nested deeper than ${maxDepth} levels.`,
)
const emptyBatch = refuse('INVALID_RPC_REQUEST', 'The batch is empty.')
const noObject = refuse('INVALID_RPC_REQUEST', 'A request must be an object.')
const twice = refuse('INVALID_RPC_REQUEST', 'The request contains a duplicate member.')
const badVersion = refuse('INVALID_RPC_REQUEST', 'The member jsonrpc must be "2.0".')
const badId = refuse('INVALID_RPC_REQUEST', 'The id must be a string, a number or null.')
const badMethod = refuse('INVALID_RPC_REQUEST', 'The member method must be a string.')
const badParams = refuse('INVALID_RPC_REQUEST', 'The member params must be an array.')
const namedParams = refuse('INVALID_PARAMS', 'params must be an array, not an object.')

/** Makes the reader; a batch may have that many calls. */
export function createEnvelopeReader({ batchLimit }: { batchLimit: number }): ReadEnvelope {
  const tooLarge = refuse('BATCH_TOO_LARGE', `The batch has more than ${batchLimit} calls.`, {
    limit: batchLimit,
  })
  // The members of the current object: one scratch area, because a body is read synchronously.
  let json: JsonText = jsonText('')
  let jsonrpc = ''
  let id: string | undefined
  let method = ''
  let params = ''
  let duplicate = false
  let isGlance = false

  const onMember = (quoted: string, from: number, to: number): boolean => {
    const name = quoted.includes('\\') ? `"${readString(quoted)}"` : quoted
    const value = json.text.slice(from, to)
    if (name === '"jsonrpc"') {
      if (jsonrpc !== '') duplicate = true
      jsonrpc = value
    } else if (name === '"id"') {
      if (id !== undefined) duplicate = true
      id = value
    } else if (name === '"method"') {
      if (method !== '') duplicate = true
      method = value
    } else if (name === '"params"') {
      if (params !== '') duplicate = true
      params = value
    }
    return true
  }

  /** Reads the request that begins here; undefined when the body is not JSON. */
  const readCall = (from: number, to: number): RpcCall | undefined => {
    jsonrpc = ''
    id = undefined
    method = ''
    params = ''
    duplicate = false
    if (json.text.charCodeAt(from) !== 0x7b)
      return skipValue(json, from) === to ? invalid(undefined, noObject) : undefined
    if (scanObject(json, from, onMember) !== to) return undefined
    const args: unknown = params === '' || isGlance ? noArgs : JSON.parse(params)
    if (id !== undefined && !isId(id)) return invalid(undefined, badId)
    if (duplicate) return invalid(undefined, twice)
    if (jsonrpc !== '"2.0"' && readString(jsonrpc) !== '2.0') return invalid(id, badVersion)
    const name = readString(method)
    if (name === undefined) return invalid(id, badMethod)
    if (args === null) return { id, method: name, params: '[]', args: noArgs, refusal: undefined }
    if (typeof args !== 'object') return invalid(id, badParams)
    if (!Array.isArray(args))
      return { id, method: name, params: '[]', args: noArgs, refusal: namedParams }
    return { id, method: name, params: params || '[]', args, refusal: undefined }
  }

  const readBatch = (from: number): Envelope => {
    const calls: RpcCall[] = []
    let many = false
    const onElement = (at: number, to: number) => {
      many = calls.length >= batchLimit
      const call = many ? undefined : readCall(at, to)
      if (call) calls.push(call)
      return call !== undefined
    }
    const end = scanArray(json, from, onElement)
    if (many) return whole(tooLarge)
    if (end < 0 || skipSpace(json.text, end) !== json.text.length) return unreadable(json.text)
    return calls.length === 0 ? whole(emptyBatch) : { batch: true, calls, refusal: undefined }
  }

  return (body, glance = false) => {
    const usual = glance ? undefined : readUsual(body)
    if (usual) return { batch: false, calls: [usual], refusal: undefined }
    json = jsonText(body, maxDepth)
    isGlance = glance
    const from = skipSpace(body, 0)
    if (body.charCodeAt(from) === 0x5b) return readBatch(from)
    let to = body.length
    while (to > from && isSpace(body.charCodeAt(to - 1))) to--
    const call = from === to ? undefined : readCall(from, to)
    return call ? { batch: false, calls: [call], refusal: undefined } : unreadable(body)
  }
}

const usualStart = '{"jsonrpc":"2.0","id":'
const usualMethod = ',"method":"'
const usualParams = '"params":['

/**
 * Reads a call in the order and spelling that most clients use; undefined where it is another one. The params are
 * the rest of the body: if they are one JSON value, nothing else can follow them. So they are parsed, and not
 * scanned before: about half of the CPU time for an `eth_call` of 200 bytes (Node 26).
 */
function readUsual(body: RawJson): RpcCall | undefined {
  const to = body.length - 1
  if (!body.startsWith(usualStart) || body.charCodeAt(to) !== 0x7d) return undefined
  const idEnd = skipId(body, usualStart.length)
  if (idEnd < 0 || !body.startsWith(usualMethod, idEnd)) return undefined
  const nameAt = idEnd + usualMethod.length
  const nameEnd = skipName(body, nameAt)
  if (body.charCodeAt(nameEnd) !== 0x22 || body.charCodeAt(nameEnd + 1) !== 0x2c) return undefined
  if (!body.startsWith(usualParams, nameEnd + 2)) return undefined
  const from = nameEnd + 2 + usualParams.length - 1
  // Spaces behind the params belong to no part of the call.
  if (body.charCodeAt(to - 1) !== 0x5d) return undefined
  const params = body.slice(from, to)
  const args = parseList(params)
  if (!args || !isShallow(args, maxDepth - 1)) return undefined
  const id = body.slice(usualStart.length, idEnd)
  return { id, method: body.slice(nameAt, nameEnd), params, args, refusal: undefined }
}

/** Where a whole number ends that JSON allows; -1 when there is none, or it is long. */
function skipId(text: string, from: number): number {
  let at = from
  while (isDigit(text.charCodeAt(at))) at++
  if (at === from || at - from > 15) return -1
  return text.charCodeAt(from) === 0x30 && at - from > 1 ? -1 : at
}

const isDigit = (char: number): boolean => char >= 0x30 && char <= 0x39

/** Where a name of letters, digits and underscores ends. */
function skipName(text: string, from: number): number {
  let at = from
  for (;;) {
    const char = text.charCodeAt(at)
    const letter = char | 0x20
    if (!(letter >= 0x61 && letter <= 0x7a) && !isDigit(char) && char !== 0x5f) return at
    at++
  }
}

function parseList(text: RawJson): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Whether a value is nested in at most so many levels. */
function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (levels === 0) return false
  for (const item of Array.isArray(value) ? value : Object.values(value))
    if (typeof item === 'object' && !isShallow(item, levels - 1)) return false
  return true
}

const unreadable = (text: RawJson): Envelope => {
  const bounds = { maxDepth, maxValues: Number.POSITIVE_INFINITY }
  return whole(measureJson(text, bounds).beyond === 'depth' ? tooDeep : malformed)
}

const whole = (refusal: Refusal): Envelope => ({ batch: false, calls: [], refusal })

const invalid = (id: RawJson | undefined, refusal: Refusal): RpcCall => ({
  // The sender always gets an answer: an invalid request is not a notification either.
  id: id ?? 'null',
  method: '',
  params: '[]',
  args: noArgs,
  refusal,
})

// Of a body that is not parsed: the id is looked for at its ends, in bounded time.
const idAhead = 512
const idBehind =
  /"id"\s{0,9}:\s{0,9}(\d{1,15}|"[\w-]{1,64}")\s{0,9}(?:,\s{0,9}"jsonrpc"\s{0,9}:\s{0,9}"2\.0"\s{0,9})?\}\s{0,9}$/

/**
 * The id of a call that is not read: looked for in front of its params, where most clients put it, and
 * behind them, in a bounded part of the body each. Null when it is in neither.
 */
export function glimpseId(body: RawJson): RawJson {
  const start = body.slice(0, idAhead)
  const from = skipSpace(start, 0)
  if (start.charCodeAt(from) !== 0x7b) return 'null'
  let id = ''
  scanObject(jsonText(start), from, (name, at, to) => {
    if (name !== '"id"') return true
    // At the end of the part it may continue.
    if (to < start.length) id = start.slice(at, to)
    return false
  })
  if (id !== '') return isId(id) ? id : 'null'
  return idBehind.exec(body.slice(-256))?.[1] ?? 'null'
}

const isSpace = (char: number) => char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09

/** Whether a scanned value is a string, a number or null. */
const isId = (value: string): boolean => {
  const first = value.charCodeAt(0)
  return first === 0x22 || first === 0x2d || (first >= 0x30 && first <= 0x39) || value === 'null'
}
