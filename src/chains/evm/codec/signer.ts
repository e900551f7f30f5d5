import { hash } from 'node:crypto'
import { byteDigits, itemsOf, quantityDigits, rlpDigits, rlpList } from './rlp.ts'

/** Recovers the address that signed a transaction; undefined where no key can have made the signature. */
export type RecoverSigner = (encoded: Uint8Array) => string | undefined

/** Loads the curve. It takes its time to load, and most processes never recover a signer. */
export async function loadRecoverSigner(): Promise<RecoverSigner> {
  const { recoverAddress } = await import('ox/Secp256k1')
  return (encoded) => {
    const signed = readSigned(encoded)
    if (!signed) return undefined
    try {
      return recoverAddress(signed).toLowerCase()
    } catch {
      // An r that is not a point of the curve: a transaction of the system with a made-up signature.
      return undefined
    }
  }
}

type Signed = {
  payload: Uint8Array
  signature: { r: bigint; s: bigint; yParity: number }
}

/**
 * What the sender signed, and the signature: the encoding of every type ends with v or the parity, r and
 * s. Undefined where the signature is empty, as that of test nodes that send for any address.
 */
export function readSigned(encoded: Uint8Array): Signed | undefined {
  const type = encoded[0]! < 0x80 ? encoded[0]! : 0
  const list = type === 0 ? encoded : encoded.subarray(1)
  const items = itemsOf(list)
  const [v, r, s] = items.slice(-3).map(({ begin, end }) => integerOf(list.subarray(begin, end)))
  if (v === undefined || r === undefined || s === undefined || r === 0n || s === 0n)
    return undefined
  const first = items[0]!
  const last = items[items.length - 4]!
  let digits = Buffer.from(list.subarray(first.from, last.end)).toString('hex')
  // EIP-155: the chain id takes the place of the signature.
  if (type === 0 && v >= 35n)
    digits +=
      rlpDigits(quantityDigits(`0x${((v - 35n) / 2n).toString(16)}`)) + rlpDigits('').repeat(2)
  const text = (type === 0 ? '' : byteDigits[type]) + rlpList(digits)
  const odd = type === 0 ? (v >= 35n ? (v - 35n) % 2n : v - 27n) : v
  if (odd !== 0n && odd !== 1n) return undefined
  return {
    payload: hash('keccak-256', Buffer.from(text, 'hex'), 'buffer'),
    signature: { r, s, yParity: Number(odd) },
  }
}

const integerOf = (bytes: Uint8Array): bigint =>
  bytes.length === 0 ? 0n : BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
