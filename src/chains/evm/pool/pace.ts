import type { Clock } from '../../../lib/clock.ts'

/** What depends on the block time of a chain. */
export type Pace = {
  /** Takes the usual block time of the chain, where it is known. */
  know(blockMs: number | undefined): void
  /** Takes the height of a head. */
  see(number: number): void
  /** The block time in milliseconds: the observed one, else the usual one; undefined where neither is known. */
  blockMs(): number | undefined
  /** The pause between two probes of a node. */
  probeIntervalMs(hasPushes: boolean): number
  /** The time limit of a probe. */
  probeTimeoutMs(): number
  /** The time after which a call counts as slow, one block; Infinity where the block time is not known. */
  slowCallMs(): number
  /** Blocks behind the best from which on a node is asked last. */
  maxLag(): number
}

const probesPerBlock = 6
const shortestMs = 250
const longestMs = 2_000
// On fast chains an answer after a second is several blocks old. On slow ones a node may take longer and is current.
const probeTimeoutFactor = 2
const longestBlockMs = 15_000
// Nodes of fast chains differ by several blocks although none of them is slow.
const usualLagMs = 3_000
// An average over fewer blocks or less time says little.
const fewBlocks = 16
const observedMs = 30_000
const longestObservedMs = 600_000

/**
 * Adapts polling, hedging and the time limit of probes to the chain (block times of 0.25 to 15 s). There are several
 * probes per block, from 0.25 s on fast chains to 2 s on slow ones. Without a usual block time the configured interval
 * is used, or a shorter one where blocks are observed to come faster. A longer one needs the usual block time: a
 * chain that was quiet for a while may become fast again.
 */
export function createPace(options: {
  clock: Clock
  /** Where the block time is not known. */
  probeIntervalMs: number
  probeTimeoutMs: number
  maxLag: number
}): Pace {
  const { clock } = options
  let known: number | undefined
  let observed: number | undefined
  let mark: { number: number; time: number } | undefined
  let highest = -1
  let intervalMs = options.probeIntervalMs
  let maxLag = options.maxLag
  let { probeTimeoutMs } = options
  let slowCallMs = Number.POSITIVE_INFINITY

  const blockMs = () =>
    known !== undefined && observed !== undefined ? Math.min(known, observed) : (known ?? observed)

  const adapt = () => {
    const usual = blockMs()
    if (usual === undefined) return
    const scaled = Math.min(Math.max(usual / probesPerBlock, shortestMs), longestMs)
    intervalMs = known === undefined ? Math.min(scaled, options.probeIntervalMs) : scaled
    maxLag = Math.max(options.maxLag, Math.ceil(usualLagMs / usual))
    probeTimeoutMs = Math.min(
      Math.max(usual, options.probeTimeoutMs / probeTimeoutFactor),
      options.probeTimeoutMs * probeTimeoutFactor,
    )
    slowCallMs = Math.min(Math.max(usual, shortestMs), longestBlockMs)
  }

  return {
    know: (ms) => {
      known = ms
      adapt()
    },
    see: (number) => {
      if (number <= highest) return
      highest = number
      const time = clock.now()
      if (!mark) mark = { number, time }
      const passed = time - mark.time
      const blocks = number - mark.number
      if (passed < observedMs || (blocks < fewBlocks && passed < longestObservedMs)) return
      if (blocks >= fewBlocks) observed = passed / blocks
      mark = { number, time }
      adapt()
    },
    blockMs: () => observed ?? known,
    probeIntervalMs: (hasPushes) =>
      hasPushes ? Math.max(intervalMs, options.probeIntervalMs) : intervalMs,
    probeTimeoutMs: () => probeTimeoutMs,
    slowCallMs: () => slowCallMs,
    maxLag: () => maxLag,
  }
}
