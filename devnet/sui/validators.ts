import { bcs } from '@mysten/sui/bcs'
import { fromBase58 } from '@mysten/sui/utils'
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { hash, u64 } from './hashing.ts'

const { Fr } = bls12_381.fields
const { shortSignatures } = bls12_381
const suite = 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_'
const power = 2_500n
const size = 4
/** Three of four sign, which is a quorum. */
const signing = 3

type Validator = { secret: bigint; key: Uint8Array }

/** Signs as the validators of an epoch. Their keys follow from the seed; every epoch has others. */
export function createValidators(seed: number) {
  const epochs = new Map<number, Validator[]>()
  const of = (epoch: number): Validator[] => {
    const known = epochs.get(epoch)
    if (known) return known
    const made = Array.from({ length: size }, (_, index) => {
      const bytes = hash('validator', u64(seed), u64(epoch), u64(index))
      const secret = Fr.create(BigInt(`0x${Buffer.from(bytes).toString('hex')}`))
      return { secret, key: shortSignatures.getPublicKey(Fr.toBytes(secret)).toBytes() }
    }).toSorted((a, b) => Buffer.compare(a.key, b.key))
    epochs.set(epoch, made)
    return made
  }
  return {
    /** In the order in which signers are counted. */
    members: (epoch: number) => of(epoch).map(({ key }) => ({ publicKey: key, weight: power })),
    /** The certificate of a summary. The sum of secrets signs like all of them together. */
    sign: (epoch: number, summary: Uint8Array) => {
      const secret = of(epoch)
        .slice(0, signing)
        .reduce((sum, one) => Fr.add(sum, one.secret), 0n)
      const message = Buffer.concat([Buffer.of(2, 0, 0), summary, u64(epoch)])
      const point = shortSignatures.sign(shortSignatures.hash(message, suite), Fr.toBytes(secret))
      return { epoch: BigInt(epoch), signature: point.toBytes(), bitmap: bitmapOf(signing) }
    },
  }
}

/** The first so many as a Roaring bitmap. */
const bitmapOf = (count: number): Uint8Array => {
  const head = Buffer.alloc(16)
  head.writeUInt32LE(12_346, 0)
  head.writeUInt32LE(1, 4)
  head.writeUInt16LE(count - 1, 10)
  head.writeUInt32LE(16, 12)
  const places = Buffer.alloc(2 * count)
  for (let place = 0; place < count; place++) places.writeUInt16LE(place, 2 * place)
  return Buffer.concat([head, places])
}

const bytesOf = (digest: string): Buffer => Buffer.concat([Buffer.of(32), fromBase58(digest)])
const lists = bcs.vector(bcs.vector(bcs.byteVector()))

/** A transaction in the contents of a checkpoint. */
export type Listed = { digest: string; effects: string; signatures: readonly Uint8Array[] }

/** The contents of a checkpoint in BCS, version 1. */
export const contentsOf = (listed: readonly Listed[]): Uint8Array => {
  const signatures = listed.map((one) => one.signatures.map((bytes) => [...bytes]))
  return Buffer.concat([
    // Version, and the length of a list that has fewer than 16,384.
    Buffer.of(0),
    bcs
      .vector(bcs.u8())
      .serialize(new Array(listed.length).fill(0))
      .toBytes()
      .subarray(0, listed.length < 128 ? 1 : 2),
    ...listed.flatMap(({ digest, effects }) => [bytesOf(digest), bytesOf(effects)]),
    lists.serialize(signatures).toBytes(),
  ])
}

/** The summary of a checkpoint in BCS. Gas of the epoch is not counted. */
export const summaryOf = (checkpoint: {
  number: number
  epoch: number
  total: number
  contents: string
  previous: string | undefined
  time: number
  next: readonly { publicKey: Uint8Array; weight: bigint }[] | undefined
}): Uint8Array => {
  const { number, epoch, total, contents, previous, time, next } = checkpoint
  return Buffer.concat([
    ...[u64(epoch), u64(number), u64(total), bytesOf(contents)],
    ...(previous === undefined ? [Buffer.of(0)] : [Buffer.of(1), bytesOf(previous)]),
    ...[Buffer.alloc(32), u64(time), Buffer.of(0)],
    ...(next
      ? [
          Buffer.of(1, next.length),
          ...next.flatMap(({ publicKey, weight }) => [Buffer.of(96), publicKey, u64(weight)]),
          // The protocol version of the next epoch, and no commitments.
          ...[u64(1), Buffer.of(0)],
        ]
      : [Buffer.of(0)]),
    Buffer.of(0),
  ])
}
