import { createPublicKey, verify } from 'node:crypto'

// The beginning of an ed25519 public key in DER (RFC 8410); the 32 bytes of the key follow.
const keyPrefix = Buffer.from('302a300506032b6570032100', 'hex')

/** Whether an ed25519 key has signed a message. What is no key or no signature has signed nothing. */
export const isSignedBy = (key: Buffer, message: Buffer, signature: Buffer): boolean => {
  // Node takes keys in DER only; it is parsed per signature, which is cheap beside verifying.
  const der = Buffer.concat([keyPrefix, key])
  try {
    return verify(
      null,
      message,
      createPublicKey({ key: der, format: 'der', type: 'spki' }),
      signature,
    )
  } catch {
    return false
  }
}

/** Whether votes are more than two thirds of all weight: with fewer, two blocks could both be final. */
export const isSupermajority = (weight: bigint, total: bigint): boolean => weight * 3n > total * 2n
