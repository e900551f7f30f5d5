import { useCallback, useEffect, useState } from 'preact/hooks'

/** Something that is loaded. `data` stays while it is loaded again. */
export type Resource<T> = {
  data: T | undefined
  error: unknown
  loading: boolean
  reload(): void
}

/** Loads when the component appears and when a key changes; an answer that came too late is dropped. */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
): Resource<T> {
  const [state, setState] = useState<{ data?: T; error?: unknown; loading: boolean }>({
    loading: true,
  })
  const [turn, setTurn] = useState(0)
  const reload = useCallback(() => setTurn((count) => count + 1), [])
  useEffect(() => {
    const controller = new AbortController()
    setState((last) => ({ ...last, loading: true }))
    load(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ data, loading: false })
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setState((last) => ({ ...last, error, loading: false }))
      },
    )
    return () => controller.abort()
  }, [...keys, turn])
  return { data: state.data, error: state.error, loading: state.loading, reload }
}

/** A list that is read page by page. */
export type PagedList<T> = {
  items: readonly T[]
  error: unknown
  loading: boolean
  /** Whether there are further pages. */
  hasMore: boolean
  /** Whether there are, and the list has all rows that it keeps. */
  isFull: boolean
  more(): void
  reload(): void
}

/** One page of a list. */
export type Page<T> = { items: readonly T[]; next: string }

/** The most rows that a list keeps in memory; exports go over all pages by themselves. */
const maxItems = 100_000

/** Reads the first page, and the next one whenever it is asked for. */
export function usePages<T>(
  load: (page_token: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
  keys: readonly unknown[],
): PagedList<T> {
  type State = { items: readonly T[]; next: string; error?: unknown; loading: boolean }
  const [state, setState] = useState<State>({ items: [], next: '', loading: true })
  const [turn, setTurn] = useState(0)
  const [wanted, setWanted] = useState('')
  const reload = useCallback(() => setTurn((count) => count + 1), [])

  useEffect(() => {
    const controller = new AbortController()
    setState((last) => ({ ...last, loading: true }))
    setWanted('')
    load(undefined, controller.signal).then(
      ({ items, next }) => {
        if (!controller.signal.aborted) setState({ items, next, loading: false })
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setState((last) => ({ ...last, error, loading: false }))
      },
    )
    return () => controller.abort()
  }, [...keys, turn])

  useEffect(() => {
    if (!wanted) return
    const controller = new AbortController()
    setState((last) => ({ ...last, loading: true }))
    load(wanted, controller.signal).then(
      ({ items, next }) => {
        if (!controller.signal.aborted)
          setState((last) => ({ items: [...last.items, ...items], next, loading: false }))
      },
      (error: unknown) => {
        if (controller.signal.aborted) return
        setState((last) => ({ ...last, error, loading: false }))
        // The same page can be asked for again.
        setWanted('')
      },
    )
    return () => controller.abort()
  }, [wanted])

  return {
    items: state.items,
    error: state.error,
    loading: state.loading,
    hasMore: state.next !== '' && state.items.length < maxItems,
    isFull: state.next !== '' && state.items.length >= maxItems,
    more: () => {
      if (!state.loading && state.next) setWanted(state.next)
    },
    reload,
  }
}
