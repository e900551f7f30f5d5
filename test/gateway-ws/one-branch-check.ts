/** What a client saw: a block, between two moments. */
export type Seen = { sent: number; received: number; number: number; hash: string; how: string }

type Announced = { number: number; hash: string }

/** What cannot be explained by one chain that changes as the sequence of heads says. */
export function violationsOf(sequence: readonly Announced[], seen: readonly Seen[]): string[] {
  // A block may come back: a node that lags behind its own announcement takes it back for a moment.
  const spans = new Map<string, { from: number; to: number }[]>()
  const canonical = new Map<number, { from: number; to: number }>()
  for (const [epoch, { number, hash }] of sequence.entries()) {
    for (const [height, span] of canonical)
      if (height >= number) {
        span.to = epoch
        canonical.delete(height)
      }
    const span = { from: epoch, to: Number.POSITIVE_INFINITY }
    canonical.set(number, span)
    spans.set(hash, [...(spans.get(hash) ?? []), span])
  }
  const violations: string[] = []
  /** Of the reads that are over, in the order of their ends: the epoch that each proves. */
  const over: { received: number; epoch: number }[] = []
  for (const { sent, received, number, hash, how } of [...seen].sort((x, y) => x.sent - y.sent)) {
    const own = spans.get(hash)
    if (!own?.[0]) {
      if (hasReturned(hash, number, seen))
        violations.push(`${how} gave ${number} ${hash}, which came back without being announced`)
      continue
    }
    let lower = 0
    if (how !== 'newHeads')
      for (const earlier of over)
        if (earlier.received < sent && earlier.epoch > lower) lower = earlier.epoch
    const span = own.find(({ to }) => to > lower)
    if (!span) violations.push(`${how} gave ${number} ${hash}, which had left the chain`)
    else over.push({ received, epoch: Math.max(span.from, lower) })
    if (over.length > 400) over.splice(0, 200, best(over.slice(0, 200)))
  }
  return violations.slice(0, 10)
}

/**
 * Subscribers may miss a block: when the service leaves it before its header is fetched, it is not announced
 * any more. Calls may return it until then, and never after a call has returned another block of that height.
 */
function hasReturned(hash: string, number: number, seen: readonly Seen[]): boolean {
  const atHeight = seen.filter((one) => one.number === number)
  const own = atHeight.filter((one) => one.hash === hash)
  const first = Math.min(...own.map(({ received }) => received))
  const left = atHeight.filter((one) => one.hash !== hash && one.sent > first)
  const leftAt = Math.min(...left.map(({ received }) => received))
  return own.some(({ sent }) => sent > leftAt)
}

const best = (reads: readonly { received: number; epoch: number }[]) =>
  reads.reduce((one, two) => ({
    received: Math.max(one.received, two.received),
    epoch: Math.max(one.epoch, two.epoch),
  }))
