import type { Clock } from '../../lib/clock.ts'
import {
  callBounds,
  createHistogram,
  type HistogramCounts,
  waitBounds,
} from '../../lib/histogram.ts'
import type { PendingDelivery } from './lanes.ts'

/** How long deliveries took, in seconds. */
export type CourierTimings = {
  /** Attempts, from the connection to the answer. */
  delivered: HistogramCounts
  failed: HistogramCounts
  /** From the creation of a notification to the attempt that was accepted, retries included. */
  latency: HistogramCounts
  /** From the time of its block, the wait for confirmations included. */
  fromBlock: HistogramCounts
}

/** Measures how long deliveries take. */
export function createTimes(clock: Clock) {
  const delivered = createHistogram(callBounds)
  const failed = createHistogram(callBounds)
  const latency = createHistogram(waitBounds)
  const fromBlock = createHistogram(waitBounds)
  return {
    measure: (
      { claim }: PendingDelivery,
      { isWell, begun, trace_id }: { isWell: boolean; begun: number; trace_id: string | undefined },
    ): void => {
      const taken = isWell ? delivered : failed
      taken.add((performance.now() - begun) / 1000, trace_id)
      if (!isWell) return
      const now = clock.now()
      latency.add(Math.max(0, now - claim.create_time.getTime()) / 1000, trace_id)
      const blockTime = blockTimeOf(claim.data)
      if (blockTime !== undefined) fromBlock.add(Math.max(0, now - blockTime) / 1000, trace_id)
    },
    read: (): CourierTimings => ({
      delivered: delivered.read(),
      failed: failed.read(),
      latency: latency.read(),
      fromBlock: fromBlock.read(),
    }),
  }
}

const transferTime = '"transfer_time":'

/**
 * The time of the block that a notification is about; undefined where it is about none. A search in
 * the text: parsing every body would cost more than the figure is worth.
 */
function blockTimeOf(data: string): number | undefined {
  const at = data.indexOf(transferTime)
  if (at === -1) return undefined
  const text = /^ ?"([^"]{1,40})"/.exec(data.slice(at + transferTime.length, at + 64))?.[1]
  const time = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}
