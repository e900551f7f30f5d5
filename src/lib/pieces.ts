/** Work that stops after each small piece. What it does must not depend on what happens between two of them. */
export type Pieces = Generator<void, void>

/** Longer work is continued in the next turn of the event loop. */
const maxMs = 2

/**
 * Does work of unknown length, such as sending something to thousands of clients, for about 2 ms in each turn of the event
 * loop. Undefined when all of it was done at once.
 */
export function inPieces(
  pieces: Pieces,
  now: () => number = performance.now.bind(performance),
): Promise<void> | undefined {
  const isDone = (): boolean => {
    const end = now() + maxMs
    while (!pieces.next().done) if (now() >= end) return false
    return true
  }
  if (isDone()) return undefined
  return new Promise((resolve, reject) => {
    const proceed = () => {
      try {
        if (isDone()) resolve()
        else setImmediate(proceed)
      } catch (error) {
        reject(error)
      }
    }
    setImmediate(proceed)
  })
}
