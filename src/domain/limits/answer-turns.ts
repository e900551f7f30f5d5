import type { LoopPace } from './loop-pace.ts'

/** Lets the calls of an organization wait until the time that its last large answers took is made up for. */
export type AnswerTurns = {
  mustWait(organization_id: string): boolean
  /** Runs a call after those that wait already; refuses it where that takes too long. */
  wait(organization_id: string, call: WaitingCall): void
}

/** A call that waits. Exactly one of both is called. */
export type WaitingCall = {
  /** What it keeps in memory meanwhile. */
  bytes: number
  /** Makes the call, and says when it is answered. */
  run(answered: () => void): void
  refuse(): void
}

type Entry = WaitingCall & { until: number }
type Line = {
  entries: Entry[]
  bytes: number
  running: number
  timer: NodeJS.Timeout | undefined
}

/** How long a call waits at most, how many of one organization do, and how much they keep in memory. */
const maxWaitMs = 3_000
const maxWaiting = 256
const maxWaitingBytes = 8_388_608
/** Calls out of one line that are not answered yet: what they cost shows with their answers only. */
const maxRunning = 4
/** A call that takes longer waits for something else than the event loop, and others of its line do not wait for it. */
const longRunMs = 500
/** Calls that are run in one turn of the event loop. */
const perTurn = 32

/**
 * Makes the turns. A call waits before it is looked at, because how large its answer is shows too late: to read it from
 * the cache is half of its cost. Calls with small answers that come after large ones wait as well.
 */
export function createAnswerTurns({
  pace,
  now = performance.now.bind(performance),
}: {
  pace: Pick<LoopPace, 'owedMs'>
  now?: () => number
}): AnswerTurns {
  const lines = new Map<string, Line>()

  const proceed = (organization_id: string, line: Line) => {
    clearTimeout(line.timer)
    for (let count = 0; count < perTurn; count++) {
      const [first] = line.entries
      if (!first) {
        if (lines.get(organization_id) === line) lines.delete(organization_id)
        return
      }
      const leftMs = first.until - now()
      const owedMs = pace.owedMs(organization_id)
      const isFree = owedMs === 0 && line.running < maxRunning
      if (!isFree && leftMs > 0) {
        const waitMs = owedMs > 0 ? Math.min(owedMs, leftMs) : leftMs
        line.timer = setTimeout(proceed, Math.ceil(waitMs), organization_id, line).unref()
        return
      }
      line.entries.shift()
      line.bytes -= first.bytes
      if (isFree) start(organization_id, line, first)
      else first.refuse()
    }
    setImmediate(proceed, organization_id, line)
  }

  const start = (organization_id: string, line: Line, { run }: Entry) => {
    line.running++
    let isRunning = true
    const end = () => {
      if (!isRunning) return
      isRunning = false
      clearTimeout(timer)
      line.running--
      // Not at once: it may have been answered while the line proceeds.
      setImmediate(proceed, organization_id, line)
    }
    const timer = setTimeout(end, longRunMs).unref()
    run(end)
  }

  return {
    mustWait: (organization_id) =>
      (lines.size > 0 && lines.has(organization_id)) || pace.owedMs(organization_id) > 0,
    wait(organization_id, call) {
      const known = lines.get(organization_id)
      const line = known ?? { entries: [], bytes: 0, running: 0, timer: undefined }
      if (line.entries.length >= maxWaiting || line.bytes + call.bytes > maxWaitingBytes)
        return call.refuse()
      line.entries.push({ ...call, until: now() + maxWaitMs })
      line.bytes += call.bytes
      if (known) return
      lines.set(organization_id, line)
      proceed(organization_id, line)
    },
  }
}
