// Base58 by `@scure/base`, which is audited and has no dependencies. Texts come from users: callers bound their length,
// because decoding takes quadratic time in it.

import { base58 } from '@scure/base'

/** The bytes of a base58 text; undefined when a character is not in its alphabet. */
export const decodeBase58 = (text: string): Buffer | undefined => {
  try {
    return Buffer.from(base58.decode(text))
  } catch {
    return undefined
  }
}

/** The base58 text of bytes. */
export const encodeBase58 = (bytes: Uint8Array): string => base58.encode(bytes)
