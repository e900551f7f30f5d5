import type { LoopPace } from '../../domain/limits/loop-pace.ts'

/** Lets the calls of an organization wait until its last large answers have had their time. */
export type AnswerTurns = {
  mustWait(organization_id: string): boolean
  /** Runs a call after those that wait already; refuses it where that takes too long. */
  wait(organization_id: string, call: WaitingCall): void
}

/** A call that waits. One of both is called. */
export type WaitingCall = { run(): void; refuse(): void }

type Entry = WaitingCall & { until: number }

/** How long a call waits at most, and how many of one organization do. */
const maxWaitMs = 3_000
const maxWaiting = 256
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
  const lines = new Map<string, Entry[]>()

  const proceed = (organization_id: string, line: Entry[]) => {
    for (let count = 0; count < perTurn; count++) {
      const [first] = line
      if (!first) return void lines.delete(organization_id)
      const leftMs = first.until - now()
      const owedMs = pace.owedMs(organization_id)
      if (leftMs > 0 && owedMs > 0) {
        setTimeout(proceed, Math.ceil(Math.min(leftMs, owedMs)), organization_id, line)
        return
      }
      line.shift()
      if (owedMs > 0) first.refuse()
      else first.run()
    }
    setImmediate(proceed, organization_id, line)
  }

  return {
    mustWait: (organization_id) =>
      (lines.size > 0 && lines.has(organization_id)) || pace.owedMs(organization_id) > 0,
    wait(organization_id, call) {
      const line = lines.get(organization_id)
      if (line && line.length >= maxWaiting) return call.refuse()
      const entry = { ...call, until: now() + maxWaitMs }
      if (line) return void line.push(entry)
      const opened = [entry]
      lines.set(organization_id, opened)
      proceed(organization_id, opened)
    },
  }
}
