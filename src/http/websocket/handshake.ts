import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { errors } from '../../contract/errors/errors.ts'
import { refused } from '../../gateway/rpc/answer.ts'
import { type Refusal, refuse } from '../../gateway/rpc/rpc-error.ts'
import { alone } from '../../gateway/rpc/served.ts'
import { isTemporary, keyChallenge } from '../problems.ts'

/** 16 bytes in base64. */
const key = /^[+/0-9A-Za-z]{22}==$/

const badKey = refuse(
  'INVALID_HANDSHAKE',
  'The header Sec-WebSocket-Key is not 16 bytes in base64, once.',
)
const badVersion = refuse('UPGRADE_REQUIRED', 'The version of the WebSocket protocol is not 13.')

/** Says why a request is not a WebSocket handshake (RFC 6455, 4.2.1); undefined where it is one. */
export function handshakeFault({ headers }: Pick<IncomingMessage, 'headers'>): Refusal | undefined {
  if (headers['sec-websocket-version'] !== '13') return badVersion
  return key.test(headers['sec-websocket-key'] ?? '') ? undefined : badKey
}

/** Answers a handshake with an HTTP status and a JSON-RPC error instead (docs/decisions/http.md). */
export function refuseHandshake(socket: Duplex, refusal: Refusal, request_id: string): void {
  const { body } = alone(refused(refusal))
  const { status } = errors[refusal.reason]
  const retryAfter = refusal.retryAfter ?? (isTemporary(status) ? 1 : undefined)
  // Written here: the socket has left the HTTP server, which would otherwise write it.
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `x-request-id: ${request_id}`,
    `Date: ${new Date().toUTCString()}`,
    'Content-Type: application/json',
    'X-Content-Type-Options: nosniff',
    `Content-Length: ${body.length}`,
    `Connection: ${status === 426 ? 'Upgrade, ' : ''}close`,
  ]
  if (retryAfter !== undefined) head.push(`Retry-After: ${retryAfter}`)
  if (status === 401) head.push(`WWW-Authenticate: ${keyChallenge}`)
  if (status === 405) head.push('Allow: GET')
  if (status === 426) head.push('Upgrade: websocket', 'Sec-WebSocket-Version: 13')
  socket.once('finish', () => socket.destroy())
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1')
}
