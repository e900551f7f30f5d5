/** The rows of a long table that are on the screen, with some above and below. */
export function visibleRange(options: {
  /** Where the first row is, from the upper edge of the window. */
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
