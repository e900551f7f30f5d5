// SCALE without values. Measured gain (Node 26, CPU time): the events of a block with 100 transfers (500 events) take 0.5 ms;
// the codec of polkadot-api takes 4.4 ms.

import type { LookupEntry } from '@polkadot-api/metadata-builders'

/**
 * Walks over SCALE without making values of it. The codecs of the libraries make an object of every
 * field and an SS58 text of every account, which is most of their time; of a block's events only a
 * few fields are needed (bench/polkadot.ts measures both).
 */
export type Skip = (bytes: Uint8Array, at: number) => number

/** The bytes are not what the metadata says. */
export class ScaleError extends Error {
  override name = 'ScaleError'
}

const fail = (what: string): never => {
  throw new ScaleError(what)
}

const byteAt = (bytes: Uint8Array, at: number): number => {
  const byte = bytes[at]
  if (byte === undefined) throw new ScaleError('ends too early')
  return byte
}

/** Where a compact number ends. */
export const skipCompact: Skip = (bytes, at) => {
  const first = byteAt(bytes, at)
  const mode = first & 3
  return mode === 0 ? at + 1 : mode === 1 ? at + 2 : mode === 2 ? at + 4 : at + 5 + (first >> 2)
}

/** A compact number that counts something. */
export const readCompact = (bytes: Uint8Array, at: number): number => {
  const first = byteAt(bytes, at)
  const byte = (offset: number) => byteAt(bytes, at + offset)
  switch (first & 3) {
    case 0:
      return first >> 2
    case 1:
      return (first | (byte(1) << 8)) >>> 2
    case 2:
      return (first | (byte(1) << 8) | (byte(2) << 16) | (byte(3) << 24)) >>> 2
    default:
      return fail('a count beyond 2^30')
  }
}

/** An unsigned number of some bytes, the lowest first. */
export const readUint = (bytes: Uint8Array, at: number, length: number): bigint => {
  if (at + length > bytes.length) fail('ends too early')
  let value = 0n
  for (let left = length; left > 0; ) {
    // Six bytes at a time are exact in a number.
    const size = Math.min(left, 6)
    left -= size
    let part = 0
    for (let index = at + left + size - 1; index >= at + left; index--)
      part = part * 256 + bytes[index]!
    // Most amounts are small: nothing but zeros above.
    if (part !== 0 || value !== 0n) value = (value << BigInt(8 * size)) + BigInt(part)
  }
  return value
}

const sizes: Record<string, number> = {
  bool: 1,
  char: 4,
  ...Object.fromEntries(
    [8, 16, 32, 64, 128, 256].flatMap((bits) => [
      [`u${bits}`, bits / 8],
      [`i${bits}`, bits / 8],
    ]),
  ),
}

const fixed =
  (length: number): Skip =>
  (_bytes, at) =>
    at + length

/** Skips one after the other. */
export const inOrder = (parts: readonly Skip[]): Skip => {
  if (parts.length === 1) return parts[0]!
  return (bytes, at) => {
    let end = at
    for (const part of parts) end = part(bytes, end)
    return end
  }
}

const repeated = (bytes: Uint8Array, at: number, count: number, item: Skip): number => {
  let end = at
  for (let left = count; left > 0; left--) {
    if (end > bytes.length) fail('ends too early')
    const next = item(bytes, end)
    // Items without bytes could be counted for ever.
    if (next === end) return end
    end = next
  }
  return end
}

/** Makes the functions that skip a type, each type once; types may contain themselves. */
export function createSkips(): (entry: LookupEntry) => Skip {
  const known = new Map<number, Skip>()
  const skipOf = (entry: LookupEntry): Skip => {
    const found = known.get(entry.id)
    if (found) return found
    let made: Skip | undefined
    // A stand-in while the type is made: it may contain itself.
    known.set(entry.id, (bytes, at) => made!(bytes, at))
    made = make(entry)
    known.set(entry.id, made)
    return made
  }

  const make = (entry: LookupEntry): Skip => {
    switch (entry.type) {
      case 'void':
        return fixed(0)
      case 'primitive': {
        if (entry.value === 'str') return skipText
        return fixed(sizes[entry.value] ?? fail(`the unknown type ${entry.value}`))
      }
      case 'AccountId32':
        return fixed(32)
      case 'AccountId20':
        return fixed(20)
      case 'compact':
        return skipCompact
      case 'bitSequence':
        return (bytes, at) => skipCompact(bytes, at) + Math.ceil(readCompact(bytes, at) / 8)
      case 'tuple':
        return inOrder(entry.value.map(skipOf))
      case 'struct':
        return inOrder(Object.values(entry.value).map(skipOf))
      case 'array': {
        const item = skipOf(entry.value)
        return (bytes, at) => repeated(bytes, at, entry.len, item)
      }
      case 'sequence': {
        const item = skipOf(entry.value)
        return (bytes, at) => repeated(bytes, skipCompact(bytes, at), readCompact(bytes, at), item)
      }
      case 'option': {
        const item = skipOf(entry.value)
        return (bytes, at) => (byteAt(bytes, at) === 0 ? at + 1 : item(bytes, at + 1))
      }
      case 'result': {
        const [ok, ko] = [skipOf(entry.value.ok), skipOf(entry.value.ko)]
        return (bytes, at) => (byteAt(bytes, at) === 0 ? ok : ko)(bytes, at + 1)
      }
      case 'enum': {
        // The libraries see the errors of the pallets in what is a fixed number of bytes.
        if (entry.byteLength !== undefined) return fixed(entry.byteLength)
        const variants: (Skip | undefined)[] = []
        for (const variant of Object.values(entry.value))
          variants[variant.idx] = inOrder(variantFields(variant).map(({ type }) => skipOf(type)))
        return (bytes, at) => {
          const skip = variants[byteAt(bytes, at)]
          return skip ? skip(bytes, at + 1) : fail('a variant that the metadata has not')
        }
      }
    }
  }
  return skipOf
}

const skipText: Skip = (bytes, at) => skipCompact(bytes, at) + readCompact(bytes, at)

/** One of the things that an enum's value may be. */
export type EnumVariant = Extract<LookupEntry, { type: 'enum' }>['value'][string]

/** The fields of a variant in their order; those without a name have their number. */
export function variantFields(variant: EnumVariant): { name: string; type: LookupEntry }[] {
  switch (variant.type) {
    case 'void':
      return []
    case 'lookupEntry':
      return [{ name: '0', type: variant.value }]
    case 'array':
      return Array.from({ length: variant.len }, (_, index) => ({
        name: `${index}`,
        type: variant.value,
      }))
    case 'tuple':
      return variant.value.map((type, index) => ({ name: `${index}`, type }))
    case 'struct':
      return Object.entries(variant.value).map(([name, type]) => ({ name, type }))
  }
}
