/** A text that stands for bytes in a Map or Set: one character per byte, half the size of hex. */
export const keyOf = (bytes: Uint8Array): string =>
  (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)).toString('latin1')

/** Whether these bytes are among some others. */
export type ByteSet = { has(bytes: Uint8Array): boolean; readonly size: number }

/** A set of byte strings. */
export const createByteSet = (items: Iterable<Uint8Array>): ByteSet => {
  const keys = new Set<string>()
  for (const item of items) keys.add(keyOf(item))
  return { has: (bytes) => keys.has(keyOf(bytes)), size: keys.size }
}

/** The same byte strings, each once, in the order of their first appearance. */
export const distinctBytes = <bytes extends Uint8Array>(items: Iterable<bytes>): bytes[] => {
  const seen = new Map<string, bytes>()
  for (const item of items) {
    const key = keyOf(item)
    if (!seen.has(key)) seen.set(key, item)
  }
  return [...seen.values()]
}
