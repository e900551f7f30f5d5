// The BCS layouts of what validators sign. They are read from bytes and not from the fields of the answer: only the bytes are
// covered by the digest.

import { bcs } from '@mysten/sui/bcs'
import { Blake2256 } from '@polkadot-api/substrate-bindings'
import { encodeBase58 } from '../../lib/base58.ts'

/** A validator: its BLS key (96 bytes, in G2) and its voting power, of 10,000 in all. */
export type Member = { key: Uint8Array; power: bigint }

/** What a checkpoint commits to. */
export type Summary = {
  epoch: number
  number: number
  /** The digest of the list of transactions. */
  contents: string
  previous: string | undefined
  /** Milliseconds since the Unix epoch. */
  time: number
  /** On the last checkpoint of an epoch: those who sign the next one. */
  nextCommittee: readonly Member[] | undefined
}

/** The digest of a message of Sui: BLAKE2b over the name of its type and its bytes. */
export const digestOf = (type: string, bytes: Uint8Array): string =>
  encodeBase58(Blake2256(Buffer.concat([Buffer.from(`${type}::`), bytes])))

const digest = bcs.byteVector()
const commitments = bcs.vector(
  bcs.enum('CheckpointCommitment', { LiveObjects: digest, Artifacts: digest }),
)
const layout = bcs.struct('CheckpointSummary', {
  epoch: bcs.u64(),
  number: bcs.u64(),
  transactions: bcs.u64(),
  contents: digest,
  previous: bcs.option(digest),
  gas: bcs.tuple([bcs.u64(), bcs.u64(), bcs.u64(), bcs.u64()]),
  time: bcs.u64(),
  commitments,
  end: bcs.option(
    bcs.struct('EndOfEpochData', {
      committee: bcs.vector(bcs.tuple([bcs.byteVector(), bcs.u64()])),
      protocol: bcs.u64(),
      commitments,
    }),
  ),
  more: bcs.byteVector(),
})

/** Reads the summary of a checkpoint from its BCS bytes. Throws where they are something else. */
export function readSummary(bytes: Uint8Array): Summary {
  const { epoch, number, contents, previous, time, end } = layout.parse(bytes)
  return {
    epoch: Number(epoch),
    number: Number(number),
    contents: encodeBase58(Uint8Array.from(contents)),
    previous: previous ? encodeBase58(Uint8Array.from(previous)) : undefined,
    time: Number(time),
    nextCommittee: end?.committee.map(([key, power]) => ({
      key: Uint8Array.from(key),
      power: BigInt(power),
    })),
  }
}

const executed = bcs.tuple([digest, digest])
const signature = bcs.byteVector()
const contentsLayout = bcs.enum('CheckpointContents', {
  V1: bcs.struct('V1', {
    transactions: bcs.vector(executed),
    signatures: bcs.vector(bcs.vector(signature)),
  }),
  V2: bcs.vector(
    bcs.struct('V2', {
      digests: executed,
      signatures: bcs.vector(bcs.tuple([signature, bcs.option(bcs.u64())])),
    }),
  ),
})

/** The transactions of a checkpoint: the digest of each and of its effects, in their order. */
export function readContents(bytes: Uint8Array): { transaction: string; effects: string }[] {
  const { V1, V2 } = contentsLayout.parse(bytes)
  const pairs = V1 ? V1.transactions : V2!.map(({ digests }) => digests)
  return pairs.map(([transaction, effects]) => ({
    transaction: encodeBase58(Uint8Array.from(transaction)),
    effects: encodeBase58(Uint8Array.from(effects)),
  }))
}
