/** Makes the `x-api-signature` of a POST. */
export type Sign = (nonce: string, path: string, body: Uint8Array) => Promise<string>

const encoder = new TextEncoder()

/** Imports an HMAC-SHA256 key for WebCrypto. */
export const hmacKey = (secret: Uint8Array<ArrayBuffer>): Promise<CryptoKey> =>
  crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
    'verify',
  ])

/** Joins a text and bytes to the bytes that are signed. */
export function signedBytes(prefix: string, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = encoder.encode(prefix)
  const bytes = new Uint8Array(head.length + body.length)
  bytes.set(head)
  bytes.set(body, head.length)
  return bytes
}

/** Signs with one api_secret: lower-case hex HMAC-SHA256 of nonce + METHOD + path + body. */
export function createSign(apiSecret: string): Sign {
  let key: Promise<CryptoKey> | undefined
  return async (nonce, path, body) => {
    key ??= hmacKey(encoder.encode(apiSecret))
    const message = signedBytes(`${nonce}POST${path}`, body)
    return hex(await crypto.subtle.sign('HMAC', await key, message))
  }
}

const hex = (buffer: ArrayBuffer) =>
  Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('')
