import { Blake2256 } from '@polkadot-api/substrate-bindings'

/** A header as the nodes give it. */
export type RawHeader = {
  parentHash: string
  number: string
  stateRoot: string
  extrinsicsRoot: string
  digest: { logs: string[] }
}

const hash = /^0x[0-9a-f]{64}$/
const quantity = /^0x[0-9a-f]{1,8}$/

/** Whether a text is a block's hash. */
export const isHash = (text: unknown): text is string => typeof text === 'string' && hash.test(text)

// Not a pattern of pairs: it keeps a place to go back to for each of them, and a node may send any length.
const isHex = (text: unknown): boolean =>
  typeof text === 'string' &&
  text.startsWith('0x') &&
  text.length % 2 === 0 &&
  !/[^0-9a-f]/.test(text.slice(2))

/** The bytes of hex. */
export const bytesOf = (text: string): Buffer => Buffer.from(text.slice(2), 'hex')

/** The header in a result that is the one of this hash and number; undefined for any other. */
export function readHeader(
  result: unknown,
  expected: { number: number; hash: string },
): RawHeader | undefined {
  const header = result as RawHeader
  const isWhole =
    quantity.test(header.number) &&
    Number(header.number) === expected.number &&
    [header.parentHash, header.stateRoot, header.extrinsicsRoot].every(isHash) &&
    header.digest.logs.every(isHex)
  return isWhole && hashOf(header) === expected.hash ? header : undefined
}

function hashOf({ parentHash, number, stateRoot, extrinsicsRoot, digest }: RawHeader): string {
  const bytes = Buffer.concat([
    bytesOf(parentHash),
    compact(Number(number)),
    bytesOf(stateRoot),
    bytesOf(extrinsicsRoot),
    compact(digest.logs.length),
    ...digest.logs.map(bytesOf),
  ])
  return `0x${Buffer.from(Blake2256(Uint8Array.from(bytes))).toString('hex')}`
}

/** SCALE's compact form of a number below 2^32. */
export function compact(value: number): Buffer {
  if (value < 1 << 6) return Buffer.of(value << 2)
  if (value < 1 << 14) return Buffer.of(((value << 2) | 1) & 0xff, value >> 6)
  const bytes = Buffer.alloc(value < 2 ** 30 ? 4 : 5)
  if (value < 2 ** 30) bytes.writeUInt32LE(value * 4 + 2)
  else {
    bytes[0] = 3
    bytes.writeUInt32LE(value, 1)
  }
  return bytes
}
