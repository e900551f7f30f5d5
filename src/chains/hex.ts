import type { Parsed } from './chain.ts'

/** `0x` and lower-case hex; nothing for no bytes. */
export const toHex = (bytes: Uint8Array): string =>
  bytes.length === 0 ? '' : `0x${Buffer.from(bytes).toString('hex')}`

const hash = /^(?:0x)?([0-9a-f]{64})$/i

/** Reads a 32-byte hash in hex. */
export const parseHexHash = (text: string): Buffer | undefined => {
  const digits = hash.exec(text)?.[1]
  return digits === undefined ? undefined : Buffer.from(digits, 'hex')
}

const evmPattern = /^0x[a-f0-9]{40}$/

/** Reads exactly the address pattern of spec 2; undefined for anything else. */
export const parseEvmPattern = (text: string): Buffer | undefined =>
  evmPattern.test(text) ? Buffer.from(text.slice(2), 'hex') : undefined

/** The parsed form of bytes. */
export const parsed = (bytes: Buffer): Parsed => ({ ok: true, bytes })

/** The parsed form of a text that is wrong, with what is wrong. */
export const refused = (detail: string): Parsed => ({ ok: false, detail })
