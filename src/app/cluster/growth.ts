import type { Log } from '../../lib/log.ts'
import { workersWithin } from './part.ts'

/** When a service of one process continues in several. */
export type GrowthRule = {
  /** How much of a core it uses, on average over the last samples. */
  busyShare: number
  samples: number
  everyMs: number
  /** After an attempt that failed, or for which there was no memory. */
  pauseMs: number
}

// Half of a core for five seconds: below what one process can do, and above what an idle service or a short burst needs.
// The values were chosen, not measured.
const usualRule: GrowthRule = { busyShare: 0.5, samples: 5, everyMs: 1_000, pauseMs: 60_000 }

/**
 * Says how many processes the free memory allows, and undefined where they would serve no more than the one that runs. A
 * busy service asks again and again, so this is logged once, until there is room.
 */
export function createRoom(options: {
  workers: number
  log: Pick<Log, 'warn'>
  available?(): number
}): () => number | undefined {
  const { workers, log, available = () => process.availableMemory() } = options
  let isShort = false
  return () => {
    const bytes = available()
    const count = workersWithin(workers, bytes)
    if (count < 2 && !isShort)
      log.warn(
        { available_mib: Math.floor(bytes / 1024 ** 2) },
        'the service is busy and stays one process: there is too little memory for more',
      )
    isShort = count < 2
    return isShort ? undefined : count
  }
}

/** Calls `grow` when this process is busy, until it has succeeded once. It answers false where this is not the time. */
export function watchLoad(options: {
  grow(): Promise<boolean>
  log: Log
  rule?: GrowthRule | undefined
  /** CPU time of this process, in microseconds. */
  cpu?(): number
  now?(): number
}): { stop(): Promise<void> } {
  const { grow, log, rule = usualRule } = options
  const { cpu = ownCpu, now = () => performance.now() } = options
  const last: { time: number; cpu: number }[] = []
  let pausedUntil = 0

  const attempt = async () => {
    pausedUntil = Number.POSITIVE_INFINITY
    try {
      if (await grow()) return void stop()
    } catch (error) {
      log.error({ err: error }, 'starting more processes failed, will retry')
    }
    pausedUntil = now() + rule.pauseMs
    last.length = 0
  }
  const timer = setInterval(() => {
    const sample = { time: now(), cpu: cpu() }
    if (sample.time < pausedUntil) return
    last.push(sample)
    if (last.length <= rule.samples) return
    const first = last.shift()!
    const share = (sample.cpu - first.cpu) / 1000 / (sample.time - first.time)
    if (share >= rule.busyShare) void attempt()
  }, rule.everyMs).unref()
  const stop = async () => clearInterval(timer)
  return { stop }
}

const ownCpu = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}
