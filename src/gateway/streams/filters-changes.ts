/** The last values of a stream, for any number of readers at their own pace. */
export type Changes = {
  push(value: string): void
  /** The place after the last value. */
  end(): number
  /** What came after a place; undefined when some of it is gone. */
  since(place: number): string[] | undefined
}

/** Keeps at most that many values. */
export function createChanges(max: number): Changes {
  let values: string[] = []
  let first = 0
  return {
    push(value) {
      values.push(value)
      // In large steps, so that each value is moved once on average.
      if (values.length < 2 * max) return
      first += values.length - max
      values = values.slice(-max)
    },
    end: () => first + values.length,
    since: (place) =>
      place < first || first + values.length - place > max
        ? undefined
        : values.slice(place - first),
  }
}
