import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Tables } from './tables.ts'

/** A pool that says how many wait for a connection of it. */
export type SharedPool = PostgresPool & { readonly waitingCount: number }

type Waiting = {
  /** With a connection, or with the right to take one from the pool. */
  resolve(client?: PostgresPoolClient): void
  reject(error: Error): void
  /** When it gives up. */
  deadline: number
}

/** Those that wait are in the order of their deadlines. */
type Share = { used: number; waiting: Set<Waiting> }

// A view holds no connection: the bound is for memory only.
const keptViews = 1_000

type Options = {
  /** Connections of a caller while no other one uses the pool, and beside others. */
  alone: number
  beside: number
  timeoutMs: number
  now?: () => number
}

type Lend = (client: PostgresPoolClient) => PostgresPoolClient
type Query = (text: string, values?: unknown[]) => Promise<unknown>

/** For so long, up to twice, a caller counts as one of several. */
const rememberedMs = 1_000

/** Records each caller; true where no other one called in the last second or two. */
const createAlone = (now: () => number): ((key: string) => boolean) => {
  let recent = new Set<string>()
  let earlier = new Set<string>()
  let since = now()
  const others = (keys: ReadonlySet<string>, key: string) => keys.size > (keys.has(key) ? 1 : 0)
  return (key) => {
    const age = now() - since
    if (age >= rememberedMs) {
      earlier = age < 2 * rememberedMs ? recent : new Set()
      recent = new Set()
      since = now()
    }
    recent.add(key)
    return !others(recent, key) && !others(earlier, key)
  }
}

/**
 * The database as one caller may use it: some of the connections of the pool at a time, and fewer while
 * others use it, too: their statements share its cores with what runs for this one. Transactions of one
 * organization wait for each other's locks (one sender, one quota) while they hold a connection; without a share the
 * others would find none left. What waits for its share holds nothing, and gives up after `timeoutMs` as the pool does.
 */
export const createShares = (
  pool: SharedPool,
  { alone, beside, timeoutMs, now = performance.now.bind(performance) }: Options,
): ((key: string) => Kysely<Tables>) => {
  const shares = new Map<string, Share>()
  const sweepMs = Math.min(1_000, timeoutMs / 4)
  let isSweeping = false
  const isAlone = createAlone(now)
  const mostOf = (key: string) => (isAlone(key) ? alone : beside)
  const views = new LRUCache<string, Kysely<Tables>>({ max: keptViews })

  const take = (key: string): Promise<PostgresPoolClient | undefined> | undefined => {
    const share = shares.get(key) ?? { used: 0, waiting: new Set() }
    shares.set(key, share)
    // A new caller does not overtake those that wait.
    if (share.waiting.size === 0 && share.used < mostOf(key)) {
      share.used++
      return undefined
    }
    return new Promise((resolve, reject) => {
      share.waiting.add({ resolve, reject, deadline: now() + timeoutMs })
      if (!isSweeping) setTimeout(sweep, sweepMs)
      isSweeping = true
    })
  }

  // One timer for all that wait.
  const sweep = (): void => {
    let left = 0
    for (const { waiting } of shares.values()) {
      for (const one of waiting) {
        if (one.deadline > now()) break
        waiting.delete(one)
        one.reject(new Error('timeout exceeded when trying to connect'))
      }
      left += waiting.size
    }
    isSweeping = left > 0
    if (isSweeping) setTimeout(sweep, sweepMs)
  }

  const fill = (share: Share, most: number): void => {
    for (const next of share.waiting) {
      if (share.used >= most) break
      share.waiting.delete(next)
      share.used++
      next.resolve()
    }
  }

  const free = (key: string): void => {
    const share = shares.get(key)!
    share.used--
    fill(share, mostOf(key))
    if (share.used === 0) shares.delete(key)
  }

  /**
   * Gives a connection to the next one that waits for this share. Through the pool, a request took 40 µs more. Not where
   * others wait for the pool, nor beyond the share: callers could otherwise keep their connections for ever.
   */
  const handOver = (key: string, client: PostgresPoolClient): boolean => {
    const share = shares.get(key)!
    const most = mostOf(key)
    const [next] = share.waiting
    if (!next || pool.waitingCount > 0 || share.used > most) return false
    share.waiting.delete(next)
    next.resolve(client)
    fill(share, most)
    return true
  }

  // Without `async`, which costs every statement two more turns.
  const connect = (key: string, lend: Lend): Promise<PostgresPoolClient> => {
    const fromPool = () =>
      pool.connect().then(lend, (error: unknown) => {
        free(key)
        throw error
      })
    const waiting = take(key)
    return waiting ? waiting.then((client) => (client ? lend(client) : fromPool())) : fromPool()
  }

  /** The connections of the pool as one caller has them. Kysely knows a connection that it has had before. */
  const createLend = (key: string): Lend => {
    const lent = new WeakMap<PostgresPoolClient, PostgresPoolClient>()
    const lend = (client: PostgresPoolClient): PostgresPoolClient => {
      // The pool looks whether a connection is broken.
      let hasFailed = false
      const note = () => {
        hasFailed = true
      }
      const query = (...args: Parameters<Query>): ReturnType<Query> => {
        const result = (client.query as Query)(...args)
        result.catch(note)
        return result
      }
      return {
        query: query as PostgresPoolClient['query'],
        release: (destroy) => {
          if (!destroy && !hasFailed && handOver(key, client)) return
          hasFailed = false
          client.release(destroy)
          free(key)
        },
      }
    }
    return (client) => {
      const known = lent.get(client)
      if (known) return known
      const made = lend(client)
      lent.set(client, made)
      return made
    }
  }

  return (key) => {
    let view = views.get(key)
    if (!view) {
      const lend = createLend(key)
      const own: PostgresPool = { ...pool, connect: () => connect(key, lend) }
      view = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: own }) })
      views.set(key, view)
    }
    return view
  }
}
