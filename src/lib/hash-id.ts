import { createHash } from 'node:crypto'

/**
 * An id that follows from what it names, so that making it twice gives one row. Each part goes in
 * with its length: no two lists of parts read alike. In the form of a UUID of version 8 (RFC 9562).
 */
export const hashId = (...parts: readonly (string | number | bigint | Uint8Array)[]): string => {
  const hash = createHash('sha256')
  for (const part of parts) {
    const bytes = part instanceof Uint8Array ? part : Buffer.from(String(part))
    hash.update(`${bytes.length}:`).update(bytes)
  }
  const digest = hash.digest()
  digest[6] = (digest[6]! & 0x0f) | 0x80
  digest[8] = (digest[8]! & 0x3f) | 0x80
  const hex = digest.toString('hex', 0, 16)
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
