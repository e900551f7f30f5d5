import type { IncomingMessage, ServerResponse } from 'node:http'
import { OperationError } from '../contract/errors.ts'
import type { Ids } from '../lib/ids.ts'

/** One request on its way through the server. */
export type Exchange = {
  request: IncomingMessage
  response: ServerResponse
  request_id: string
  /** The address that the request comes from. */
  client: string
  method: string
  /** The request target as sent: what a signature covers. */
  target: string
  /** The target without its query. */
  path: string
  signal: AbortSignal
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
): Exchange {
  const request_id = requestIdOf(request.headers['x-request-id'], ids)
  const target = request.url ?? '/'
  const query = target.indexOf('?')
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
    method: request.method ?? 'GET',
    target,
    path: query < 0 ? target : target.slice(0, query),
    signal: aborted.signal,
  }
}

const continueToken = /(?:^|\W)100-continue(?:\W|$)/i

/** Whether the value of an `Expect` header asks for `100 Continue`, as Node's server sees it. */
export const isContinue = (expect: string): boolean => continueToken.test(expect)

/** What is read of a body that is refused, at most, so that the client can read the refusal. */
const drainBytes = 33_554_432
const drainMs = 5_000

/**
 * Reads and drops the rest of a body. Most clients look for an answer only when they have sent the whole
 * body; on a connection that is closed before, they fail with a broken pipe instead. True when the body
 * came to its end, so that the connection can be used again.
 */
export const drainBody = (request: IncomingMessage): Promise<boolean> =>
  new Promise((resolve) => {
    if (request.destroyed) return resolve(request.readableEnded)
    // Its end would not be reached.
    if (Number(request.headers['content-length'] ?? 0) > drainBytes) return resolve(false)
    let size = 0
    const done = (isWhole: boolean) => {
      clearTimeout(timer)
      request.off('data', onData).off('end', onEnd).off('close', onClose)
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

/** Reads the body up to the limit; beyond it nothing is kept. */
export async function readBody(
  { request, response }: Pick<Exchange, 'request' | 'response'>,
  limit: number,
): Promise<Buffer> {
  const expectsContinue = request.httpVersion === '1.1' && isContinue(request.headers.expect ?? '')
  const isTooLarge = Number(request.headers['content-length'] ?? 0) > limit
  // One that waits to be asked for its body has not sent it, and is not asked.
  if (isTooLarge && expectsContinue) throw tooLarge(limit, false)
  if (expectsContinue) response.writeContinue()
  const body = isTooLarge ? undefined : await receiveBody(request, limit)
  if (!body) throw tooLarge(limit, await drainBody(request))
  return body
}

function tooLarge(limit: number, isReusable: boolean): OperationError {
  const headers: Record<string, string> = isReusable ? {} : { connection: 'close' }
  return new OperationError('BODY_TOO_LARGE', {
    detail: `The body is larger than ${limit} bytes.`,
    headers,
  })
}

/** Undefined as soon as the body is larger than the limit. */
const receiveBody = (request: IncomingMessage, limit: number): Promise<Buffer | undefined> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) {
        request.off('data', onData).pause()
        resolve(undefined)
      } else chunks.push(chunk)
    }
    request.on('data', onData)
    request.once('end', () =>
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)),
    )
    request.once('error', reject)
    request.once('aborted', () => reject(new Error('the caller hung up')))
  })

/** Sends an answer as a whole. */
export function send(
  { response, method }: Exchange,
  status: number,
  headers: Record<string, string>,
  body: string | Uint8Array,
): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
  response.end(method === 'HEAD' ? undefined : body)
}
