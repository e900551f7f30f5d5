import { blake2b } from '@noble/hashes/blake2.js'

/** The hash of Sui: BLAKE2b with 32 bytes. */
export const hash = (...parts: readonly (Uint8Array | string)[]): Uint8Array =>
  blake2b(
    Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))),
    { dkLen: 32 },
  )

/** A number as BCS writes it. */
export const u64 = (value: bigint | number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}
