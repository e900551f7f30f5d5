import type { IncomingMessage } from 'node:http'
import { type Refusal, refuse } from '../../gateway/rpc/rpc-error.ts'

/** 16 bytes in base64. */
const key = /^[+/0-9A-Za-z]{22}==$/

const badKey = refuse(
  'INVALID_HANDSHAKE',
  'The header Sec-WebSocket-Key is not 16 bytes in base64, once.',
)
const badVersion = refuse('UPGRADE_REQUIRED', 'The version of the WebSocket protocol is not 13.')

/** Says why a request is no WebSocket handshake (RFC 6455, 4.2.1); undefined where it is one. */
export function handshakeFault({ headers }: Pick<IncomingMessage, 'headers'>): Refusal | undefined {
  if (headers['sec-websocket-version'] !== '13') return badVersion
  return key.test(headers['sec-websocket-key'] ?? '') ? undefined : badKey
}
