import { type ReadonlySignal, signal } from '@preact/signals'

/** An address inside of the console. */
export type Place = { path: string; query: URLSearchParams }

/** The address bar as a signal. */
export type Router = {
  place: ReadonlySignal<Place>
  /** The address of a page for a link. */
  href(to: string): string
  /** Goes to an address of the console, such as `wallets/c`. */
  go(to: string, options?: { replace?: boolean }): void
  /** Changes the query of the current page without a new entry in the history. */
  setQuery(changes: Readonly<Record<string, string | undefined>>): void
  stop(): void
}

/** Follows the address bar, and links that are clicked, below the base path of the service. */
export function createRouter(window: Window, basePath: string): Router {
  const { document, history, location } = window
  const href = (to: string) => `${basePath}/${to.replace(/^\/+/, '')}`
  const read = (): Place => ({
    path: pathBelow(basePath, location.pathname),
    query: new URLSearchParams(location.search),
  })
  const place = signal(read())
  const onMove = () => {
    place.value = read()
  }
  const go: Router['go'] = (to, { replace = false } = {}) => {
    history[replace ? 'replaceState' : 'pushState'](null, '', href(to))
    onMove()
    if (!replace) window.scrollTo(0, 0)
  }
  const onClick = (event: MouseEvent) => {
    // Only links of the component Link: documents, downloads and other origins open as usual.
    const link = event.target instanceof Element ? event.target.closest('a[data-link]') : null
    if (!(link instanceof HTMLAnchorElement) || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    go(link.pathname.slice(basePath.length) + link.search + link.hash)
  }
  window.addEventListener('popstate', onMove)
  document.addEventListener('click', onClick)
  return {
    place,
    href,
    go,
    setQuery: (changes) => {
      const query = new URLSearchParams(location.search)
      for (const [name, value] of Object.entries(changes))
        if (value) query.set(name, value)
        else query.delete(name)
      const text = query.toString()
      history.replaceState(null, '', `${location.pathname}${text ? `?${text}` : ''}`)
      onMove()
    },
    stop: () => {
      window.removeEventListener('popstate', onMove)
      document.removeEventListener('click', onClick)
    },
  }
}

/** The part of a path below the base, without slashes around it. */
export function pathBelow(base: string, path: string): string {
  const below = path.startsWith(base) ? path.slice(base.length) : path
  return below.replace(/^\/+|\/+$/g, '')
}

/** The parameters of a path that fits a pattern such as `wallets/:chain`; undefined where it does not fit. */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/')
  const given = path.split('/')
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = decode(given[index] ?? '')
    if (part.startsWith(':')) {
      if (!value) return undefined
      params[part.slice(1)] = value
    } else if (part !== value) return undefined
  }
  return params
}

/** An address of the console from its parts; ids may have any character. */
export const pathTo = (...parts: string[]): string => parts.map(encodeURIComponent).join('/')

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
