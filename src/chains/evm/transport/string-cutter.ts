// Measured gain (Node 26, CPU time): of a call trace of 32 MB with long inputs 25 KB are left after 8 ms. `JSON.parse` of the
// whole takes 55 to 95 ms and its memory. A streaming parser would make a token of every string.

const quote = 0x22
const backslash = 0x5c
// Not empty: an error text must still read as an error.
const stub = Buffer.from('"~')

/** How many times its largest size may be received of a reply whose strings are cut: no memory, but time and bandwidth. */
export const cutFactor = 16

/**
 * Makes a function that takes a JSON text in parts and gives each part with every string longer than
 * `longest` bytes replaced by `"~"`. What is left out takes no memory: the inputs of a call trace can
 * be a thousand times larger than all that is read from it.
 */
export function createStringCutter(longest: number): (part: Buffer) => Buffer {
  // A string that may still turn out to be short, from its opening quote on.
  let open: Buffer | undefined
  let isDropping = false
  // How many backslashes end the part that was dropped last.
  let backslashes = 0

  return (part) => {
    const text = open ? Buffer.concat([open, part]) : part
    const kept: Buffer[] = []
    open = undefined
    let from = 0
    let at = 0
    if (isDropping) {
      const end = endOfString(text, 0, backslashes)
      if (end < 0) {
        backslashes = countBackslashes(text, text.length, 0, backslashes)
        return Buffer.alloc(0)
      }
      isDropping = false
      from = end
      at = end + 1
    }
    for (;;) {
      const start = text.indexOf(quote, at)
      if (start < 0) break
      const end = endOfString(text, start + 1, 0)
      const length = (end < 0 ? text.length : end) - start - 1
      if (length > longest) {
        kept.push(text.subarray(from, start), stub)
        from = end
      }
      if (end < 0) {
        isDropping = length > longest
        if (isDropping) backslashes = countBackslashes(text, text.length, start + 1, 0)
        else {
          kept.push(text.subarray(from, start))
          open = Buffer.from(text.subarray(start))
        }
        return Buffer.concat(kept)
      }
      at = end + 1
    }
    if (kept.length === 0 && from === 0) return text
    kept.push(text.subarray(from))
    // Copied: a view of a few bytes would keep the whole part in memory.
    return Buffer.concat(kept)
  }
}

/** Where the closing quote of a string is; -1 when it is not in this text. */
function endOfString(text: Buffer, from: number, before: number): number {
  for (let at = text.indexOf(quote, from); at >= 0; at = text.indexOf(quote, at + 1))
    if (countBackslashes(text, at, from, before) % 2 === 0) return at
  return -1
}

/** How many backslashes stand right before a place; `before` of them stood before `from`. */
function countBackslashes(text: Buffer, at: number, from: number, before: number): number {
  let first = at
  while (first > from && text[first - 1] === backslash) first--
  return at - first + (first === from ? before : 0)
}
