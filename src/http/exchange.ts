import type { IncomingMessage, ServerResponse } from 'node:http'
import { OperationError } from '../contract/errors.ts'
import type { Ids } from '../lib/ids.ts'

/** One request on its way through the server. */
export type Exchange = {
  request: IncomingMessage
  response: ServerResponse
  request_id: string
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
    method: request.method ?? 'GET',
    target,
    path: query < 0 ? target : target.slice(0, query),
    signal: aborted.signal,
  }
}

/** Reads the body up to the limit; beyond it nothing is kept. */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = () =>
    new OperationError('BODY_TOO_LARGE', {
      detail: `The body is larger than ${limit} bytes.`,
      // The rest of the body is still on its way; the connection cannot be used again.
      headers: { connection: 'close' },
    })
  if (Number(request.headers['content-length'] ?? 0) > limit) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) {
        request.off('data', onData)
        request.resume()
        reject(tooLarge())
      } else chunks.push(chunk)
    }
    request.on('data', onData)
    request.once('end', () =>
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)),
    )
    request.once('error', reject)
    request.once('aborted', () => reject(new Error('the caller hung up')))
  })
}

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
