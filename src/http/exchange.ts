import type { IncomingMessage, ServerResponse } from 'node:http'
import { OperationError, type Reason } from '../contract/errors/errors.ts'
import type { Principal } from '../domain/access/principal.ts'
import type { Ids } from '../lib/ids.ts'
import type { Bound, Shares } from './clients/shares.ts'

/** Reported for every finished exchange. */
export type Finished = {
  route: string
  path: string
  status: number
  seconds: number
  request_id: string
  client: string
  facts: Facts
}

/** What the access log says of a request. Filled in on its way. */
export type Facts = {
  request_id: string
  principal: Principal | undefined
  /** Why the request failed. */
  reason: Reason | undefined
  bytes_in: number
  bytes_out: number
  /** Where the request is traced. */
  trace_id: string | undefined
}

/** The facts of a request of which nothing is known yet. */
export const noFacts = (request_id: string): Facts => ({
  request_id,
  principal: undefined,
  reason: undefined,
  bytes_in: 0,
  bytes_out: 0,
  trace_id: undefined,
})

/** Of an exchange whose caller left before the answer: Node would report the 200 it begins with. */
export const hungUp = 499

/** One request on its way through the server. */
export type Exchange = {
  request: IncomingMessage
  response: ServerResponse
  request_id: string
  /** The address that the request comes from. */
  client: string
  /** The room that bodies have in memory. */
  bodies?: Shares | undefined
  method: string
  /** The request target as sent: what a signature covers. */
  target: string
  /** The target without base path and query. */
  path: string
  signal: AbortSignal
  facts: Facts
}

/** The id of a request: the caller's if it is well-formed, or a new one. */
export const requestIdOf = (given: string | string[] | undefined, ids: Ids): string =>
  typeof given === 'string' && /^[\w.:-]{1,100}$/.test(given) ? given : ids.uuid()

/** Opens an exchange; a well-formed request id of the caller is kept. */
export function openExchange(
  request: IncomingMessage,
  response: ServerResponse,
  ids: Ids,
  client: string,
  bodies?: Shares,
  /** The target as sent, where the URL of the request is without the base path. */
  target: string = request.url ?? '/',
): Exchange {
  const request_id = requestIdOf(request.headers['x-request-id'], ids)
  const url = request.url ?? '/'
  const query = url.indexOf('?')
  const aborted = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) aborted.abort(new Error('the caller hung up'))
  })
  response.setHeader('x-request-id', request_id)
  response.setHeader('x-content-type-options', 'nosniff')
  return {
    request,
    response,
    request_id,
    client,
    bodies,
    method: request.method ?? 'GET',
    target,
    path: query < 0 ? url : url.slice(0, query),
    signal: aborted.signal,
    facts: noFacts(request_id),
  }
}

const continueToken = /(?:^|\W)100-continue(?:\W|$)/i

/** Whether the value of an `Expect` header asks for `100 Continue`, as Node's server sees it. */
export const isContinue = (expect: string): boolean => continueToken.test(expect)

/** What is read of a body that is refused, at most, so that the client can read the refusal. */
const drainBytes = 33_554_432
const drainMs = 5_000
/** How long a connection stays open after the refusal of a body that is cut off. */
const lingerMs = 1_000

/**
 * Delays the end of a connection whose client still sends, as nginx does by `lingering_close`. Closing a socket with unread bytes
 * resets the connection, and the client's system then drops the refusal if it was not read yet. Nothing more is read: the
 * bytes stay in the client.
 */
function closeLate(request: IncomingMessage): void {
  const { socket } = request
  request.pause()
  const destroySoon = socket.destroySoon.bind(socket)
  // Called by Node's server once the last answer is written.
  socket.destroySoon = () => {
    socket.end()
    setTimeout(destroySoon, lingerMs).unref()
  }
}

/**
 * Reads and drops the rest of a body. Most clients look for an answer only when they have sent the whole
 * body; on a connection that is closed before, they fail with a broken pipe instead. True when the body
 * came to its end, so that the connection can be used again.
 */
export const drainBody = (request: IncomingMessage): Promise<boolean> =>
  new Promise((resolve) => {
    if (request.destroyed) return resolve(request.readableEnded)
    // Its end would not be reached.
    if (Number(request.headers['content-length'] ?? 0) > drainBytes) {
      closeLate(request)
      return resolve(false)
    }
    let size = 0
    const done = (isWhole: boolean) => {
      clearTimeout(timer)
      request.off('data', onData).off('end', onEnd).off('close', onClose)
      if (!isWhole) closeLate(request)
      resolve(isWhole)
    }
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size > drainBytes) done(false)
    }
    const onEnd = () => done(true)
    const onClose = () => done(false)
    const timer = setTimeout(done, drainMs, false)
    request.on('data', onData).on('end', onEnd).on('close', onClose)
    request.resume()
  })

type Reading = Pick<Exchange, 'request' | 'response'> & Partial<Pick<Exchange, 'client' | 'bodies'>>

/** Reads the body up to the limit; beyond it nothing is kept. */
export async function readBody(exchange: Reading, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  const { response, client, bodies } = exchange
  const take = bodies && client !== undefined ? openRoom(response, client, bodies) : undefined
  await receive(exchange, limit, (chunk) => {
    chunks.push(chunk)
    return take?.(chunk.length)
  })
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

/** Makes room for a body part by part; all of it is given back when the request is answered. */
export function openRoom(
  response: ServerResponse,
  client: string,
  bodies: Shares,
): (bytes: number) => Bound | undefined {
  let held = 0
  return (bytes) => {
    // What still comes for a request that is over is dropped.
    if (response.closed) return undefined
    const bound = bodies.take(client, bytes)
    if (bound) return bound
    if (held === 0) response.once('close', () => bodies.giveBack(client, held))
    held += bytes
    return undefined
  }
}

/** Reads the body of a request that is refused whatever it says, keeps nothing, and returns its size. */
export async function skipBody(exchange: Reading, limit: number): Promise<number> {
  let size = 0
  await receive(exchange, limit, (chunk) => {
    size += chunk.length
    return undefined
  })
  return size
}

async function receive(
  { request, response }: Reading,
  limit: number,
  keep: (chunk: Buffer) => Bound | undefined,
): Promise<void> {
  const expectsContinue = request.httpVersion === '1.1' && isContinue(request.headers.expect ?? '')
  const isTooLarge = Number(request.headers['content-length'] ?? 0) > limit
  // One that waits to be asked for its body has not sent it, and is not asked.
  if (isTooLarge && expectsContinue) throw tooLarge(limit, false)
  if (expectsContinue) response.writeContinue()
  const end = isTooLarge ? 'limit' : await receiveBody(request, limit, keep)
  if (end === 'limit') throw tooLarge(limit, await drainBody(request))
  if (end !== 'whole') throw noRoom(end)
}

/** The refusal of a body that finds no room; its connection is closed. */
export const noRoom = (bound: Bound): OperationError =>
  new OperationError(noRoomReasons[bound], { retryAfter: 1, headers: { connection: 'close' } })

/** Why a body finds no room. */
export const noRoomReasons = {
  client: 'TOO_MUCH_IN_FLIGHT',
  all: 'OVERLOADED',
} as const satisfies Record<Bound, Reason>

function tooLarge(limit: number, isReusable: boolean): OperationError {
  const headers: Record<string, string> = isReusable ? {} : { connection: 'close' }
  return new OperationError('BODY_TOO_LARGE', {
    detail: `The body is larger than ${limit} bytes.`,
    headers,
  })
}

/** Ends early when the body is larger than the limit, or finds no room. */
const receiveBody = (
  request: IncomingMessage,
  limit: number,
  keep: (chunk: Buffer) => Bound | undefined,
): Promise<'whole' | 'limit' | Bound> =>
  new Promise((resolve, reject) => {
    let size = 0
    const onData = (chunk: Buffer) => {
      size += chunk.length
      const end = size > limit ? 'limit' : keep(chunk)
      if (!end) return
      request.off('data', onData).pause()
      resolve(end)
    }
    request.on('data', onData)
    request.once('end', () => resolve('whole'))
    request.once('error', reject)
    request.once('aborted', () => reject(new Error('the caller hung up')))
  })

/** Sends an answer as a whole. */
export function send(
  { response, method, facts }: Exchange,
  status: number,
  headers: Record<string, string>,
  body: string | Uint8Array,
): void {
  if (response.headersSent || response.destroyed) return
  const length = Buffer.byteLength(body)
  facts.bytes_out = length
  response.writeHead(status, { ...headers, 'content-length': length })
  response.end(method === 'HEAD' ? undefined : body)
}
