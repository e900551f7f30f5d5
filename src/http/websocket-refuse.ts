import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { errors } from '../contract/errors.ts'
import { refused } from '../gateway/answer.ts'
import type { Refusal } from '../gateway/rpc-error.ts'
import { alone } from '../gateway/serve.ts'

/** Answers a handshake with an HTTP status and a JSON-RPC error instead (docs/decisions.md 3). */
export function refuseHandshake(socket: Duplex, refusal: Refusal, request_id: string): void {
  const { body } = alone(refused(refusal))
  const { status } = errors[refusal.reason]
  const retry = refusal.retryAfter === undefined ? [] : [`Retry-After: ${refusal.retryAfter}`]
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `x-request-id: ${request_id}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Connection: close',
    ...retry,
  ]
  socket.once('finish', () => socket.destroy())
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1')
}
