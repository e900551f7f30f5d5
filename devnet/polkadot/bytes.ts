import { Blake2256, Twox128 } from '@polkadot-api/substrate-bindings'

/** `0x` and lower-case hex. */
export const toHex = (bytes: Uint8Array): string =>
  `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`

/**
 * Whether a text is `0x` and pairs of hex digits. A pattern for the pairs keeps a place to go back to for each of them,
 * and fails with "Maximum call stack size exceeded" on some runtimes, which have several megabytes.
 */
export const isHex = (text: string): boolean =>
  text.startsWith('0x') && text.length % 2 === 0 && !/[^0-9a-fA-F]/.test(text.slice(2))

/** The bytes of `0x` and hex; throws on anything else. */
export const fromHex = (text: string): Buffer => {
  if (!isHex(text)) throw new Error(`not hex: ${text.slice(0, 80)}`)
  return Buffer.from(text.slice(2), 'hex')
}

/** A storage key as a text with one character per byte, so that it can be a key of a Map. */
export const keyText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')

/** The bytes of such a text. */
export const keyBytes = (text: string): Buffer => Buffer.from(text, 'latin1')

const nameHashes = new Map<string, Uint8Array>()
const hashName = (name: string): Uint8Array => {
  let hash = nameHashes.get(name)
  if (!hash) {
    hash = Twox128(Buffer.from(name))
    nameHashes.set(name, hash)
  }
  return hash
}

/** The key of a storage item, and of an entry of it where the hashed key follows. */
export const storageKey = (pallet: string, item: string, ...rest: Uint8Array[]): string =>
  keyText(Buffer.concat([hashName(pallet), hashName(item), ...rest]))

/** blake2b-256, with which everything on the chain is named. */
export const hash256 = (bytes: Uint8Array): Uint8Array => Blake2256(bytes)

/** A length or small number in SCALE's compact form. */
export const compact = (value: number): Uint8Array => {
  if (value < 1 << 6) return Uint8Array.of(value << 2)
  if (value < 1 << 14) return Uint8Array.of(((value << 2) | 1) & 0xff, value >> 6)
  if (value < 2 ** 30)
    return Uint8Array.of(
      ((value << 2) | 2) & 0xff,
      (value >> 6) & 0xff,
      (value >> 14) & 0xff,
      (value >> 22) & 0xff,
    )
  throw new Error(`too long: ${value}`)
}

/** Reads a compact number; gives it and where it ends. */
export const readCompact = (bytes: Uint8Array, at = 0): { value: number; end: number } => {
  const first = bytes[at]
  if (first === undefined) throw new Error('ends too early')
  const byte = (offset: number) => bytes[at + offset] ?? 0
  switch (first & 3) {
    case 0:
      return { value: first >> 2, end: at + 1 }
    case 1:
      return { value: (first | (byte(1) << 8)) >> 2, end: at + 2 }
    case 2: {
      const value = (first | (byte(1) << 8) | (byte(2) << 16) | (byte(3) << 24)) >>> 2
      return { value, end: at + 4 }
    }
    default:
      throw new Error('too long')
  }
}

/** Bytes with their length before them. */
export const withLength = (bytes: Uint8Array): Buffer =>
  Buffer.concat([compact(bytes.length), bytes])

/** An unsigned number of that many bytes, the lowest first. */
export const uint = (value: number | bigint, length: number): Buffer => {
  const bytes = Buffer.alloc(length)
  let rest = BigInt(value)
  for (let at = 0; at < length; at++) {
    bytes[at] = Number(rest & 0xffn)
    rest >>= 8n
  }
  return bytes
}

/** Reads an unsigned number, the lowest byte first. */
export const readUint = (bytes: Uint8Array): bigint => {
  let value = 0n
  for (let at = bytes.length - 1; at >= 0; at--) value = (value << 8n) | BigInt(bytes[at]!)
  return value
}
