import { createEntry, type Entry } from './entry.ts'

const CANDIDATES = 64

/** The entries in memory: never more than `max_entries`, the longest unused go first. */
export type Entries = {
  /** The entry, made when there is none. */
  open(organization_id: string, chain: string): Entry
  /** The entry, if it is in memory. */
  find(organization_id: string, chain: string): Entry | undefined
  size(): number
}

type Options = {
  max_entries: number
  /** A new entry: begin to read what is stored of it. */
  opened: (entry: Entry) => void
  /** An entry leaves with counts that are not flushed yet. */
  spill: (entry: Entry) => void
}

/** Holds entries by organization and chain, without making a key string for every call. */
export const createEntries = ({ max_entries, opened, spill }: Options): Entries => {
  const organizations = new Map<string, Map<string, Entry>>()
  const order = new Set<Entry>()

  const remove = (entry: Entry): void => {
    order.delete(entry)
    const chains = organizations.get(entry.organization_id)
    chains?.delete(entry.chain)
    if (chains?.size === 0) organizations.delete(entry.organization_id)
  }

  // Second chance instead of true LRU: a call sets a flag, and only evictions move entries.
  const evict = (): void => {
    let seen = 0
    for (const entry of order) {
      seen += 1
      const busy = entry.touched || entry.dirty || entry.loading !== undefined
      if (!busy || seen > CANDIDATES) {
        if (entry.dirty) spill(entry)
        remove(entry)
        return
      }
      entry.touched = false
      order.delete(entry)
      order.add(entry)
    }
  }

  const find = (organization_id: string, chain: string) =>
    organizations.get(organization_id)?.get(chain)

  return {
    find,
    size: () => order.size,
    open: (organization_id, chain) => {
      const found = find(organization_id, chain)
      if (found !== undefined) {
        found.touched = true
        return found
      }
      if (order.size >= max_entries) evict()
      const entry = createEntry(organization_id, chain)
      const chains = organizations.get(organization_id)
      if (chains === undefined) organizations.set(organization_id, new Map([[chain, entry]]))
      else chains.set(chain, entry)
      order.add(entry)
      opened(entry)
      return entry
    },
  }
}
