// Memory of what nodes have given that cannot be true. Cells that do not fit their hash may be the fault of one node: they
// count against the block only after three attempts and 30 seconds. A replayed transaction counts at once.

/** What is remembered of transactions that nodes gave, to find those that cannot be true. */
export type Doubts = {
  /**
   * Notes that the cells of a transaction are not those of its hash. True while another node, or another
   * attempt, may still give the right ones.
   */
  mayHelp(hash: string): boolean
  /** Whether a transaction was in an earlier block already: an account's logical times only grow. */
  isReplayed(account: string, lt: bigint, block: number): boolean
}

// Other nodes may be away for a moment, while one that lies answers at once.
const leastStrikes = 3
const patienceMs = 30_000
// Bounds of the memory. What is forgotten is only asked for once more.
const rememberedStrikes = 1_024
const rememberedAccounts = 65_536

/** Remembers the last transactions. */
export function createDoubts({ now }: { now(): number }): Doubts {
  const strikes = new Map<string, { count: number; since: number }>()
  const last = new Map<string, { lt: bigint; block: number }>()
  return {
    mayHelp: (hash) => {
      const { count, since } = strikes.get(hash) ?? { count: 0, since: now() }
      renew(strikes, hash, { count: count + 1, since }, rememberedStrikes)
      return count + 1 < leastStrikes || now() - since < patienceMs
    },
    isReplayed: (account, lt, block) => {
      const known = last.get(account)
      // Blocks of history, and those that are decoded again.
      if (known && block < known.block) return false
      if (known && block > known.block && lt <= known.lt) return true
      const highest = known && known.lt > lt ? known.lt : lt
      renew(last, account, { lt: highest, block }, rememberedAccounts)
      return false
    },
  }
}

/** Sets a value as the newest one, and forgets the oldest. */
function renew<value>(map: Map<string, value>, key: string, value: value, most: number): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > most && oldest !== undefined) map.delete(oldest)
}
