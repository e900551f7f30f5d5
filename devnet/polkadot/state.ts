import { find, findNext, insert, nibblesOf, remove, rootOf, type Trie } from './trie.ts'

/** The storage after a block, as the runtime sees it. */
export type State = {
  get(key: string): Uint8Array | null
  /** The smallest key after this one. */
  next(key: string): string | null
}

/** Changed keys; null is gone. */
export type Changes = Map<string, Uint8Array | null>

/** A state that can be hashed and gone on from. */
export type TrieState = State & {
  trie: Trie
  with(changes: Changes): TrieState
  root(version: number): Uint8Array
}

/** A state over a trie. */
export const createTrieState = (trie: Trie): TrieState => ({
  trie,
  get: (key) => find(trie, nibblesOf(key)) ?? null,
  next: (key) => findNext(trie, key) ?? null,
  with: (changes) => {
    let changed = trie
    for (const [key, value] of changes)
      changed = value ? insert(changed, nibblesOf(key), value) : remove(changed, nibblesOf(key))
    return createTrieState(changed)
  },
  root: (version) => rootOf(trie, version),
})

/** The trie of a state; it is made anew for one that is read from the disk. */
export function trieOf(state: State & Partial<TrieState>): Trie {
  if ('trie' in state) return state.trie
  let trie: Trie
  for (let key = state.next(''); key !== null; key = state.next(key))
    trie = insert(trie, nibblesOf(key), state.get(key)!)
  return trie
}

/** What is written on top of a state, with transactions in transactions. */
export type Overlay = State & {
  set(key: string, value: Uint8Array | null): void
  start(): void
  commit(): void
  rollback(): void
  /** Removes at most that many keys of the base that begin so, and all of the overlay's own. */
  clearPrefix(prefix: string, limit?: number): { removed: number; isDone: boolean }
  root(version: number): Uint8Array
  /** What differs from the base. */
  changes(): Changes
}

/** Begins to write on top of a state. */
export function createOverlay(base: State & Partial<TrieState>): Overlay {
  const layers: Changes[] = [new Map()]
  const top = () => layers.at(-1)!
  const get = (key: string): Uint8Array | null => {
    for (let at = layers.length - 1; at >= 0; at--) {
      const value = layers[at]!.get(key)
      if (value !== undefined) return value
    }
    return base.get(key)
  }
  const next = (after: string): string | null => {
    let below = base.next(after)
    while (below !== null && get(below) === null) below = base.next(below)
    let best = below
    for (const layer of layers)
      for (const key of layer.keys())
        if (key > after && (best === null || key < best) && get(key) !== null) best = key
    return best
  }
  const changes = (): Changes => {
    const all: Changes = new Map()
    for (const layer of layers) for (const [key, value] of layer) all.set(key, value)
    for (const [key, value] of all) {
      const before = base.get(key)
      if (value === before || (value && before && Buffer.compare(value, before) === 0))
        all.delete(key)
    }
    return all
  }
  return {
    get,
    next,
    changes,
    set: (key, value) => void top().set(key, value),
    start: () => void layers.push(new Map()),
    commit: () => {
      const done = layers.pop()!
      for (const [key, value] of done) top().set(key, value)
    },
    rollback: () => void layers.pop(),
    clearPrefix: (prefix, limit = Number.POSITIVE_INFINITY) => {
      let removed = 0
      let key = get(prefix) === null ? next(prefix) : prefix
      for (; key?.startsWith(prefix); key = next(key)) {
        const isBelow = base.get(key) !== null
        if (isBelow && removed >= limit) return { removed, isDone: false }
        if (isBelow) removed++
        top().set(key, null)
      }
      return { removed, isDone: true }
    },
    root: (version) => {
      if (!base.with) throw new Error('the root of an old state cannot be worked out')
      return base.with(changes()).root(version)
    },
  }
}
