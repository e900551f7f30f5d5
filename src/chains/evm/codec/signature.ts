import { toHex } from '../../hex.ts'
import type { TransactionFields } from '../../sending.ts'
import { type Signature, signingHash } from './legacy-transaction.ts'

/** What reading a signature gives. */
export type ReadSignature = { ok: true; signature: Signature } | { ok: false; detail: string }

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const halfOrder = order >> 1n
const topBit = 1n << 255n

const refused = (detail: string): ReadSignature => ({ ok: false, detail })

/**
 * Reads a signature in any of the usual forms and checks that it is the sender's: 65 bytes with v 0,
 * 1, 27, 28 or that of EIP-155 (which may take more bytes), or 64 bytes (EIP-2098). Of the two values
 * of s that fit every signature only the low one is taken, as the chain does (EIP-2).
 */
export async function readSignature(
  text: string,
  fields: TransactionFields,
): Promise<ReadSignature> {
  const parts = split(text, fields.chain_id)
  if (!parts.ok) return parts
  const { r, s } = parts.signature
  if (r === 0n || r >= order || s === 0n || s >= order)
    return refused('r or s is not a number of the curve.')
  if (s > halfOrder) return refused('s is in the upper half; chains take the lower one (EIP-2).')
  const signer = await recover(signingHash(fields), parts.signature)
  const from = toHex(fields.from)
  if (signer === undefined) return refused('No key can have made it.')
  if (signer !== from)
    return refused(`Was made by ${signer}, or of another message; not by ${from}.`)
  return parts
}

function split(text: string, chainId: bigint): ReadSignature {
  const digits = /^(?:0x)?((?:[0-9a-f]{2})+)$/i.exec(text)?.[1]
  if (digits === undefined) return refused('Must be 0x and hex digits.')
  if (digits.length < 128 || digits.length > 128 + 32)
    return refused('Must have 65 bytes (r, s, v), or 64 (EIP-2098).')
  const r = BigInt(`0x${digits.slice(0, 64)}`)
  const word = BigInt(`0x${digits.slice(64, 128)}`)
  if (digits.length === 128) {
    const s = word & (topBit - 1n)
    return { ok: true, signature: { r, s, parity: word >= topBit ? 1 : 0 } }
  }
  const v = BigInt(`0x${digits.slice(128)}`)
  const first = chainId * 2n + 35n
  const at = [0n, 27n, first].find((base) => v === base || v === base + 1n)
  if (at !== undefined) return { ok: true, signature: { r, s: word, parity: v === at ? 0 : 1 } }
  if (v < 35n) return refused('v must be 0, 1, 27, 28 or that of EIP-155.')
  return refused(`v is of the chain ${(v - 35n) / 2n}; the transaction is of the chain ${chainId}.`)
}

async function recover(hash: Buffer, { r, s, parity }: Signature): Promise<string | undefined> {
  // Loading the curve takes a tenth of a second, and most processes never check a signature.
  const { recoverAddress } = await import('ox/Secp256k1')
  try {
    return recoverAddress({ payload: hash, signature: { r, s, yParity: parity } }).toLowerCase()
  } catch {
    // An r that is not a point of the curve.
    return undefined
  }
}
