/** One page of a list. */
export type Page<T> = { items: readonly T[]; next: string }

/** A list that is read page by page, of any length: it knows the place of every page and keeps the rows of some. */
export type PageList<T> = {
  /** How many rows were read. */
  count(): number
  /** A row; undefined where its page was dropped and is not loaded again yet. */
  at(index: number): T | undefined
  /** The rows of the pages that are kept, in order. */
  kept(): readonly T[]
  error(): unknown
  loading(): boolean
  hasMore(): boolean
  /** Reads the page after the last one. */
  more(): void
  /** Says which rows are on the screen: their pages are loaded, and pages far from them are dropped. */
  show(start: number, end: number): void
  /** Reads the pages on the screen again; false while the first one is among them, where the list may begin anew. */
  reread(): boolean
  stop(): void
}

type Place = { token: string | undefined; start: number; count: number }

/** Pages beside those on the screen that are kept. */
const keptPages = 60
/** The first pages are always kept: new rows are compared with them. */
const firstPages = 5

/** Makes the list and reads its first page. One request is under way at a time. */
export function createPageList<T>(options: {
  load(page_token: string | undefined, signal: AbortSignal): Promise<Page<T>>
  onChange(): void
}): PageList<T> {
  const { load, onChange } = options
  const places: Place[] = []
  const rows = new Map<number, readonly T[]>()
  /** Pages that are shown until they are read again. */
  const stale = new Set<number>()
  const stopped = new AbortController()
  let next = ''
  let error: unknown
  let loading = false
  let seen = { first: 0, last: 0 }
  let flat: readonly T[] | undefined

  const pageOf = (index: number): number => {
    let low = 0
    let high = places.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (places[middle]!.start <= index) low = middle
      else high = middle - 1
    }
    return low
  }

  const count = () => {
    const last = places.at(-1)
    return last ? last.start + last.count : 0
  }

  const dropFar = () => {
    if (rows.size <= keptPages) return
    const distance = (page: number) => Math.max(seen.first - page, page - seen.last, 0)
    const far = [...rows.keys()]
      .filter((page) => page >= firstPages && distance(page) > 0)
      .sort((a, b) => distance(b) - distance(a))
    for (const page of far.slice(0, rows.size - keptPages)) rows.delete(page)
  }

  const read = (page: number, token: string | undefined) => {
    if (loading || stopped.signal.aborted) return
    loading = true
    load(token, stopped.signal).then(
      (found) => {
        if (stopped.signal.aborted) return
        loading = false
        error = undefined
        keep(page, token, found)
        fill()
        onChange()
      },
      (reason: unknown) => {
        if (stopped.signal.aborted) return
        loading = false
        error = reason
        onChange()
      },
    )
  }

  const keep = (page: number, token: string | undefined, found: Page<T>) => {
    const known = places[page]
    stale.delete(page)
    if (known) {
      // Those after it are known by their own keys: what moved up from them would be shown twice.
      const items = found.items.slice(0, known.count)
      rows.set(page, items)
      const gone = known.count - items.length
      if (gone > 0) {
        known.count = items.length
        for (const later of places.slice(page + 1)) later.start -= gone
      }
    } else {
      places.push({ token, start: count(), count: found.items.length })
      rows.set(page, found.items)
      next = found.next
    }
    flat = undefined
    dropFar()
  }

  /** Loads the first page on the screen that is not there. One that failed is tried again after the next scroll. */
  const fill = () => {
    for (let page = seen.first; page <= seen.last && page < places.length; page++)
      if (!rows.has(page) || stale.has(page)) return read(page, places[page]!.token)
  }

  read(0, undefined)
  return {
    count,
    at: (index) => {
      const page = pageOf(index)
      return rows.get(page)?.[index - (places[page]?.start ?? 0)]
    },
    kept: () => {
      flat ??= [...rows.keys()].sort((a, b) => a - b).flatMap((page) => rows.get(page) ?? [])
      return flat
    },
    error: () => error,
    loading: () => loading,
    hasMore: () => next !== '',
    more: () => {
      if (next === '' || loading) return
      read(places.length, next)
      onChange()
    },
    show: (start, end) => {
      const shown = { first: pageOf(start), last: pageOf(Math.max(start, end - 1)) }
      if (shown.first === seen.first && shown.last === seen.last) return
      seen = shown
      fill()
    },
    reread: () => {
      if (seen.first === 0) return false
      stale.clear()
      for (let page = seen.first; page <= seen.last; page++) stale.add(page)
      fill()
      return true
    },
    stop: () => stopped.abort(),
  }
}
