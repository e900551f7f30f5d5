import { createHmac } from 'node:crypto'
import { noteSecret, noteSignature } from './log-capture.ts'

/** Both halves of a credential. */
export type Pair = { api_key: string; api_secret: string }

/** What is signed: the text of the decisions, written here once more and independently of the service. */
export type Signed = { method?: string; path: string; body?: string | Uint8Array; nonce?: string }

let count = 0

/** A nonce in nanoseconds that no other call of this test file got. */
export const nextNonce = (now = Date.now()): string =>
  `${now}${String(count++ % 1_000_000).padStart(6, '0')}`

/** The lower-case hex HMAC-SHA256 of nonce + METHOD + path + body. */
export const signature = (
  api_secret: string,
  { method = 'POST', path, body = '', nonce = '' }: Signed,
): string => {
  const hmac = createHmac('sha256', api_secret)
  hmac.update(`${nonce}${method}${path}`).update(body)
  const hex = hmac.digest('hex')
  noteSignature(hex)
  return hex
}

/** The three headers of a signed request. */
export const authHeaders = (pair: Pair, request: Signed) => {
  const nonce = request.nonce ?? nextNonce()
  noteSecret(pair.api_key)
  noteSecret(pair.api_secret)
  return {
    'x-api-key': pair.api_key,
    'x-api-nonce': nonce,
    'x-api-signature': signature(pair.api_secret, { ...request, nonce }),
  }
}
