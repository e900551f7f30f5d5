import type { Parsed } from '../chain.ts'
import { parsed, refused } from '../hex.ts'

const address = /^0x([0-9a-fA-F]{1,64})$/

/** Reads `0x` and 1 to 64 hex digits; short ones are padded with zeros on the left (Sui's own rule). */
export const parseAddress = (text: string): Parsed => {
  const digits = address.exec(text)?.[1]
  return digits === undefined
    ? refused('Must be 0x and 1 to 64 hex digits.')
    : parsed(Buffer.from(digits.padStart(64, '0'), 'hex'))
}
