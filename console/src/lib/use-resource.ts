import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { createPageList, type Page, type PageList } from './page-list.ts'

/** Something that is loaded. `data` stays while it is loaded again, unless something else was asked for and failed. */
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
  const loadedKeys = useRef(keys)
  const reload = useCallback(() => setTurn((count) => count + 1), [])
  useEffect(() => {
    const controller = new AbortController()
    setState((last) => ({ ...last, loading: true }))
    load(controller.signal).then(
      (data) => {
        if (controller.signal.aborted) return
        loadedKeys.current = keys
        setState({ data, loading: false })
      },
      (error: unknown) => {
        if (controller.signal.aborted) return
        const isSame = areSame(keys, loadedKeys.current)
        setState((last) => ({ ...(isSame && { data: last.data }), error, loading: false }))
      },
    )
    return () => controller.abort()
  }, [...keys, turn])
  return { data: state.data, error: state.error, loading: state.loading, reload }
}

const areSame = (some: readonly unknown[], others: readonly unknown[]): boolean =>
  some.every((key, at) => key === others[at])

/** A list that is read page by page, for a component. */
export type PagedList<T> = Pick<PageList<T>, 'at' | 'more' | 'show'> & {
  count: number
  /** The rows of the pages that are kept: the first ones, and those around the screen. */
  items: readonly T[]
  error: unknown
  loading: boolean
  hasMore: boolean
  reload(): void
}

/**
 * Reads the first page, and others as they are asked for. While it is read again the old rows stay; also when that fails,
 * unless the failure is of another filter: its error above rows that it does not have would be misleading.
 */
export function usePages<T>(
  load: (page_token: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
  keys: readonly unknown[],
): PagedList<T> {
  const [turn, setTurn] = useState(0)
  const [, setVersion] = useState(0)
  const shown = useRef<PageList<T>>(undefined)
  const shownKeys = useRef(keys)
  const newest = useRef<PageList<T>>(undefined)
  // Of a list that is scrolled only what is on the screen is read again: it would jump to its start.
  const reload = useCallback(() => {
    if (!newest.current?.reread()) setTurn((count) => count + 1)
  }, [])
  useEffect(() => {
    const list = createPageList<T>({
      load,
      onChange: () => {
        // Until its first page is there, the list before it is shown.
        const isOther = !areSame(keys, shownKeys.current)
        if (!list.loading() && (list.count() > 0 || !list.error() || isOther)) {
          shown.current = list
          shownKeys.current = keys
        }
        setVersion((count) => count + 1)
      },
    })
    newest.current = list
    shown.current ??= list
    setVersion((count) => count + 1)
    return () => list.stop()
  }, [...keys, turn])
  const list = shown.current
  return {
    count: list?.count() ?? 0,
    items: list?.kept() ?? [],
    error: newest.current?.error(),
    loading: newest.current?.loading() ?? true,
    hasMore: list?.hasMore() ?? false,
    at: (index) => list?.at(index),
    more: () => list?.more(),
    show: (start, end) => list?.show(start, end),
    reload,
  }
}
