import { createECDH, randomBytes } from 'node:crypto'

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
const digitsOf = (number: bigint): string => number.toString(16).padStart(64, '0')
const modulo = (number: bigint): bigint => ((number % order) + order) % order

/** Euclid's algorithm. */
const inverse = (number: bigint): bigint => {
  let [a, b, x, y] = [modulo(number), order, 1n, 0n]
  while (b > 0n) [a, b, x, y] = [b, a % b, y, x - (a / b) * y]
  return modulo(x)
}

/** r times the curve's base point: OpenSSL does the hard part. */
const pointOf = (scalar: bigint): { x: bigint; isOdd: boolean } => {
  const curve = createECDH('secp256k1')
  curve.setPrivateKey(digitsOf(scalar), 'hex')
  const point = curve.getPublicKey()
  return { x: numberOf(point.subarray(1, 33)), isOdd: (point[64]! & 1) === 1 }
}

/** Signs a hash with nothing but a key, as the textbook says; `high` keeps the s that chains refuse. */
export function signWithRawKey(
  hash: string,
  key: string,
  { high = false }: { high?: boolean } = {},
): { r: bigint; s: bigint; parity: number } {
  const k = modulo(numberOf(randomBytes(32)))
  const { x, isOdd } = pointOf(k)
  const r = modulo(x)
  const s = modulo(inverse(k) * (BigInt(hash) + r * BigInt(key)))
  const isHigh = s > order / 2n
  return { r, s: isHigh === high ? s : order - s, parity: Number(isOdd) ^ Number(isHigh !== high) }
}

/** A signature as most libraries print it. */
export const toText = ({ r, s }: { r: bigint; s: bigint }, v: number | bigint): string => {
  const digits = v.toString(16)
  return `0x${digitsOf(r)}${digitsOf(s)}${digits.length % 2 ? `0${digits}` : digits}`
}
