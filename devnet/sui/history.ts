import { GrpcTypes } from '@mysten/sui/grpc'
import { toBase58 } from '@mysten/sui/utils'
import { hash } from './hashing.ts'
import { contentsOf, type createValidators, type Listed, summaryOf } from './validators.ts'

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
  /** The digest of its contents; chains of older versions have none on disk. */
  contents?: string
  epoch?: number
  /** The last one of its epoch. */
  endsEpoch?: true
}

/** Milliseconds as protobuf writes a moment. */
export const toTimestamp = (ms: number) => ({
  seconds: BigInt(Math.floor(ms / 1_000)),
  nanos: (ms % 1_000) * 1_000_000,
})

const mostSignatures = 1_000

/** The checkpoints and transactions that are kept. */
export type History = ReturnType<typeof createHistory>

/** Keeps the newest checkpoints and transactions; older ones are dropped as a pruned node does. */
export function createHistory(
  retain: { checkpoints: number; transactions: number },
  validators: ReturnType<typeof createValidators>,
) {
  const signatures = new Map<string, GrpcTypes.ValidatorAggregatedSignature>()
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

  const summaryBytes = (checkpoint: Omit<Checkpoint, 'digest'> & { contents: string }) => {
    const { epoch = 0, endsEpoch } = checkpoint
    return summaryOf({
      ...checkpoint,
      epoch,
      next: endsEpoch && validators.members(epoch + 1),
    })
  }
  const listedOf = (digests: readonly string[]): Listed[] =>
    digests.map((digest) => {
      const { effects, signatures } = executed(digest)!
      return {
        digest,
        effects: effects?.digest ?? '',
        signatures: signatures.map(({ bcs }) => bcs!.value!),
      }
    })
  /** Signed when it is asked for: that takes longer than everything else about a checkpoint. */
  const signatureOf = (digest: string, epoch: number, summary: Uint8Array) => {
    const known = signatures.get(digest) ?? validators.sign(epoch, summary)
    if (signatures.size >= mostSignatures) signatures.clear()
    signatures.set(digest, known)
    return known
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
    seal: (
      time: number,
      listed: readonly Listed[],
      { salt = '', endsEpoch = false }: { salt?: string; endsEpoch?: boolean } = {},
    ): Checkpoint => {
      const next = {
        number: newest ? newest.number + 1 : 0,
        previous: newest?.digest,
        time: newest ? Math.max(time, newest.time) : time,
        digests: listed.map(({ digest }) => digest),
        total: (newest?.total ?? 0) + listed.length,
        contents: toBase58(hash('CheckpointContents::', salt, salt ? '' : contentsOf(listed))),
        epoch: (newest?.epoch ?? 0) + (newest?.endsEpoch ? 1 : 0),
        ...(endsEpoch && { endsEpoch: true as const }),
      }
      return { ...next, digest: toBase58(hash('CheckpointSummary::', summaryBytes(next))) }
    },
    /** The last checkpoint of an epoch that is over. */
    lastOf: (epoch: number): number | undefined =>
      checkpoints.values().find((one) => one.endsEpoch && one.epoch === epoch)?.number,
    /** From now on nothing below this number is there. */
    prune: (to: number) => prune(Math.min(to, newest?.number ?? 0)),
    checkpoints: () => checkpoints.values(),
    /** A checkpoint as the services give it. */
    toProto: (checkpoint: Checkpoint): GrpcTypes.Checkpoint => {
      const { number, digest, previous, digests, epoch = 0, contents, total, time } = checkpoint
      const bytes = contents === undefined ? undefined : summaryBytes({ ...checkpoint, contents })
      return {
        sequenceNumber: BigInt(number),
        digest,
        summary: {
          ...(bytes && { bcs: { name: 'CheckpointSummary', value: bytes } }),
          digest,
          epoch: BigInt(epoch),
          sequenceNumber: BigInt(number),
          totalNetworkTransactions: BigInt(total),
          ...(contents !== undefined && { contentDigest: contents }),
          ...(previous !== undefined && { previousDigest: previous }),
          timestamp: toTimestamp(time),
          commitments: [],
        },
        get signature() {
          return bytes && signatureOf(digest, epoch, bytes)
        },
        get contents() {
          const value = contentsOf(listedOf(digests))
          return { bcs: { name: 'CheckpointContents', value }, transactions: [] }
        },
        transactions: digests.map((one) => executed(one)!),
      } as GrpcTypes.Checkpoint
    },
  }
}
