import { GrpcTypes } from '@mysten/sui/grpc'
import { fromBase58, toBase58 } from '@mysten/sui/utils'
import { hash, u64 } from './hashing.ts'

/** A checkpoint as it is kept. */
export type Checkpoint = {
  number: number
  digest: string
  previous: string | undefined
  /** Milliseconds since the Unix epoch. */
  time: number
  /** Of its transactions. */
  digests: readonly string[]
  /** Transactions of the chain up to here. */
  total: number
}

/** Milliseconds as protobuf writes a moment. */
export const toTimestamp = (ms: number) => ({
  seconds: BigInt(Math.floor(ms / 1_000)),
  nanos: (ms % 1_000) * 1_000_000,
})

const bytesOf = (digest: string): Buffer => Buffer.concat([Buffer.of(32), fromBase58(digest)])

/** The digest of a checkpoint over its summary in BCS. */
const digestOf = (checkpoint: Omit<Checkpoint, 'digest'>, salt: string): string => {
  const { number, previous, time, digests, total } = checkpoint
  const contents = hash('CheckpointContents::', salt, ...digests.map(bytesOf))
  return toBase58(
    hash(
      'CheckpointSummary::',
      ...[u64(0), u64(number), u64(total), Buffer.of(32), contents],
      ...(previous === undefined ? [Buffer.of(0)] : [Buffer.of(1), bytesOf(previous)]),
      // Gas of the epoch is not counted; no commitments, no end of an epoch, no further data.
      ...[Buffer.alloc(32), u64(time), Buffer.of(0, 0, 0)],
    ),
  )
}

/** The checkpoints and transactions that are kept. */
export type History = ReturnType<typeof createHistory>

/** Keeps the newest checkpoints and transactions; older ones are dropped as a pruned node does. */
export function createHistory(retain: { checkpoints: number; transactions: number }) {
  const checkpoints = new Map<number, Checkpoint>()
  const transactions = new Map<string, { bytes: Uint8Array; checkpoint: number; index: number }>()
  let lowest = 0
  let newest: Checkpoint | undefined

  const prune = (to: number): void => {
    for (; lowest < to; lowest++) {
      for (const digest of checkpoints.get(lowest)?.digests ?? []) transactions.delete(digest)
      checkpoints.delete(lowest)
    }
  }
  const put = (checkpoint: Checkpoint, executed: readonly Uint8Array[]): void => {
    if (checkpoints.size === 0) lowest = checkpoint.number
    checkpoints.set(checkpoint.number, checkpoint)
    for (const [index, digest] of checkpoint.digests.entries())
      transactions.set(digest, { bytes: executed[index]!, checkpoint: checkpoint.number, index })
    newest = checkpoint
    while (checkpoints.size > retain.checkpoints || transactions.size > retain.transactions) {
      if (lowest === checkpoint.number) break
      prune(lowest + 1)
    }
  }
  const executed = (digest: string): GrpcTypes.ExecutedTransaction | undefined => {
    const kept = transactions.get(digest)
    if (!kept) return undefined
    return {
      ...GrpcTypes.ExecutedTransaction.fromBinary(kept.bytes),
      checkpoint: BigInt(kept.checkpoint),
      timestamp: toTimestamp(checkpoints.get(kept.checkpoint)!.time),
      transactionIndex: BigInt(kept.index),
    }
  }

  return {
    lowest: () => lowest,
    newest: () => newest!,
    at: (number: number) => checkpoints.get(number),
    has: (digest: string) => transactions.has(digest),
    bytes: (digest: string) => transactions.get(digest)?.bytes,
    executed,
    put,
    /** Puts transactions into the next checkpoint. */
    seal: (time: number, digests: readonly string[], salt = ''): Checkpoint => {
      const next = {
        number: newest ? newest.number + 1 : 0,
        previous: newest?.digest,
        time: newest ? Math.max(time, newest.time) : time,
        digests,
        total: (newest?.total ?? 0) + digests.length,
      }
      return { ...next, digest: digestOf(next, salt) }
    },
    /** From now on nothing below this number is there. */
    prune: (to: number) => prune(Math.min(to, newest?.number ?? 0)),
    checkpoints: () => checkpoints.values(),
    /** A checkpoint as the services give it. */
    toProto: (checkpoint: Checkpoint): GrpcTypes.Checkpoint => ({
      sequenceNumber: BigInt(checkpoint.number),
      digest: checkpoint.digest,
      summary: {
        digest: checkpoint.digest,
        epoch: 0n,
        sequenceNumber: BigInt(checkpoint.number),
        totalNetworkTransactions: BigInt(checkpoint.total),
        ...(checkpoint.previous !== undefined && { previousDigest: checkpoint.previous }),
        timestamp: toTimestamp(checkpoint.time),
        commitments: [],
      },
      transactions: checkpoint.digests.map((digest) => executed(digest)!),
    }),
  }
}
