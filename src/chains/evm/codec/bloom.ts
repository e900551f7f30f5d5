import { hash } from 'node:crypto'

/**
 * Whether a logs bloom may contain an address or topic (`0x` hex). False is certain: a block with
 * such a bloom has no log of it.
 */
export function bloomHas(bloom: string, item: string): boolean {
  const bits = Buffer.from(bloom.slice(2), 'hex')
  const digest = hash('keccak-256', Buffer.from(item.slice(2), 'hex'), 'buffer')
  for (const at of [0, 2, 4]) {
    const bit = digest.readUInt16BE(at) & 2047
    if (((bits[255 - (bit >> 3)] ?? 0) & (1 << (bit & 7))) === 0) return false
  }
  return true
}
