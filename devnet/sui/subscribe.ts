import type { GrpcTypes } from '@mysten/sui/grpc'
import type { Faults } from './faults.ts'
import type { Checkpoint } from './history.ts'
import type { Ledger } from './ledger.ts'

/** A full node closes a stream whose reader is this many checkpoints behind. */
const queueBound = 256

/** Gives the newest checkpoint and every one after it, until the reader goes or falls behind. */
export async function* subscribe(options: {
  ledger: Ledger
  faults: Faults
  signal: AbortSignal
  show(checkpoint: Checkpoint): GrpcTypes.Checkpoint
}): AsyncGenerator<{ cursor: bigint; checkpoint: GrpcTypes.Checkpoint }> {
  const { ledger, faults, signal, show } = options
  const shown = () => ledger.history.newest().number - faults.lag - faults.indexLag
  let next = Math.max(0, shown())
  let news = Promise.withResolvers<void>()
  const wake = () => news.resolve()
  const unsubscribe = ledger.onCheckpoint(wake)
  signal.addEventListener('abort', wake)
  try {
    while (!signal.aborted) {
      const last = shown()
      if (last - next > queueBound) return
      const checkpoint = next <= last && !faults.stalled ? ledger.history.at(next) : undefined
      if (checkpoint) {
        next++
        yield { cursor: BigInt(checkpoint.number), checkpoint: show(checkpoint) }
      } else {
        await news.promise
        news = Promise.withResolvers()
      }
    }
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', wake)
  }
}
