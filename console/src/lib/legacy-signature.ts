/** Bytes, or a list of items. */
type Item = Uint8Array | readonly Item[]

/**
 * The signature of a signed legacy transaction (nine RLP items): r, s and the recovery bit as 65 bytes of hex. Wallets
 * of the browser sign whole transactions; the service takes the signature alone.
 */
export function signatureOf(raw: string): string {
  const bytes = fromHex(raw)
  const [item, end] = decode(bytes, 0)
  if (end !== bytes.length || item instanceof Uint8Array || item.length !== 9)
    throw new Error('The wallet did not return a signed legacy transaction.')
  const [v, r, s] = item.slice(6).map((part) => toBigInt(part))
  // EIP-155 writes chain id × 2 + 35 + recovery bit, older wallets 27 + recovery bit.
  const recovery = v! >= 35n ? (v! - 35n) % 2n : v! - 27n
  if (recovery !== 0n && recovery !== 1n)
    throw new Error('The signature of the wallet has no recovery bit.')
  return `0x${word(r!)}${word(s!)}${recovery === 1n ? '01' : '00'}`
}

const word = (value: bigint) => value.toString(16).padStart(64, '0')

function toBigInt(item: Item): bigint {
  if (!(item instanceof Uint8Array)) throw new Error('A part of the signature is a list.')
  let value = 0n
  for (const byte of item) value = (value << 8n) | BigInt(byte)
  return value
}

function fromHex(text: string): Uint8Array {
  if (!/^0x(?:[0-9a-f]{2})+$/i.test(text)) throw new Error('The wallet did not return hex.')
  return Uint8Array.from(text.slice(2).match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

/** One RLP item from a position, and where it ends. */
function decode(bytes: Uint8Array, at: number): [Item, number] {
  const first = bytes[at]
  if (first === undefined) throw new Error('The transaction ends too early.')
  if (first < 0x80) return [bytes.slice(at, at + 1), at + 1]
  const isList = first >= 0xc0
  const short = first - (isList ? 0xc0 : 0x80)
  const lengthBytes = short > 55 ? short - 55 : 0
  const length =
    lengthBytes === 0 ? short : Number(toBigInt(bytes.slice(at + 1, at + 1 + lengthBytes)))
  const start = at + 1 + lengthBytes
  const end = start + length
  if (end > bytes.length) throw new Error('The transaction ends too early.')
  if (!isList) return [bytes.slice(start, end), end]
  const items: Item[] = []
  for (let next = start; next < end; ) {
    const [item, after] = decode(bytes, next)
    items.push(item)
    next = after
  }
  return [items, end]
}
