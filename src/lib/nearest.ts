/** The candidate that a typo most likely meant, if any is close enough to be worth saying. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  // A third of the letters may be wrong; beyond that a guess confuses more than it helps.
  let limit = Math.floor(Math.min(word.length, 40) / 3) + 1
  for (const candidate of candidates) {
    const edits = distance(word.slice(0, 40).toLowerCase(), candidate.toLowerCase(), limit)
    if (edits < limit) {
      limit = edits
      best = candidate
    }
  }
  return best
}

function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next[j] = Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1)
    }
    row = next
  }
  return row[b.length] as number
}
