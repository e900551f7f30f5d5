/** Browsers do not lay out boxes of any height: Firefox ends at 17.8 million pixels, Chromium at 33.5 million. */
export const maxPixels = 8_000_000

/** The rows of a long table that are on the screen, with some above and below. */
export function visibleRange(options: {
  /** Where the first row would be, from the upper edge of the window. */
  top: number
  height: number
  viewport: number
  count: number
}): { start: number; end: number } {
  const { top, height, viewport, count } = options
  const margin = Math.ceil(viewport / height)
  const first = Math.floor(-top / height)
  const start = Math.min(Math.max(0, first - margin), Math.max(0, count - 1))
  const end = Math.min(count, Math.max(start + 1, first + 2 * margin + margin))
  // Steps of ten, so that a small scroll changes nothing.
  return { start: start - (start % 10), end }
}

/**
 * Where the rows are in a table that is higher than its box may be. `shift` is how far rows are above their true place.
 * While the user scrolls by little it stays, so that rows move as fast as the page; after a jump, as with the scroll
 * bar, the place in the box decides the place in the list. Near an end of the box `scroll` moves the page so that there is
 * room again, and the rows stay where they are on the screen.
 */
export function shiftRows(options: {
  /** How far the box is scrolled now, and was before. */
  scrolled: number
  before: number
  shift: number
  /** The height of all rows. */
  total: number
  viewport: number
}): { shift: number; scroll: number } {
  const { scrolled, before, shift, total, viewport } = options
  const room = maxPixels - viewport
  if (total <= maxPixels) return { shift: 0, scroll: 0 }
  const ratio = (total - viewport) / room
  const at = Math.min(Math.max(scrolled, 0), room)
  if (Math.abs(scrolled - before) > 4 * viewport) return { shift: at * (ratio - 1), scroll: 0 }
  if (at > viewport / 2 && at < room - viewport / 2) return { shift, scroll: 0 }
  const place = Math.min(at + shift, total - viewport)
  const moved = place / ratio
  return { shift: place - moved, scroll: moved - at }
}
