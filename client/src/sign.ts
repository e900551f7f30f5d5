/** Makes the `x-api-signature` of a request. */
export type Sign = (
  nonce: string,
  method: string,
  path: string,
  body: Uint8Array,
) => Promise<string>

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

/**
 * Turns an api_secret into a key that signs and cannot be read again. A page can keep it in IndexedDB and pass it as
 * `api_secret`.
 */
export const importSecret = (apiSecret: string): Promise<CryptoKey> =>
  crypto.subtle.importKey(
    'raw',
    encoder.encode(apiSecret),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  )

/** Signs with one api_secret: lower-case hex HMAC-SHA256 of nonce + METHOD + path + body. */
export function createSign(apiSecret: string | CryptoKey): Sign {
  let key: Promise<CryptoKey> | undefined
  return async (nonce, method, path, body) => {
    key ??= typeof apiSecret === 'string' ? importSecret(apiSecret) : Promise.resolve(apiSecret)
    const message = signedBytes(`${nonce}${method}${path}`, body)
    return hex(await crypto.subtle.sign('HMAC', await key, message))
  }
}

const hex = (buffer: ArrayBuffer) =>
  Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('')
