import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Tables } from './tables.ts'

type Share = { used: number; waiting: Set<() => void> }

// A view holds no connection: the bound is for memory only.
const keptViews = 1_000

type Options = {
  most: number
  timeoutMs: number
  now?: () => number
}

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
 * The database as one caller may use it: at most `most` of the connections of the pool at a time, and half of that while
 * others use it, too: their statements share its cores with what runs for this one. Transactions of one
 * organization wait for each other's locks (one sender, one quota) while they hold a connection; without a share the
 * others would find none left. What waits for its share holds nothing, and gives up after `timeoutMs` as the pool does.
 */
export const createShares = (
  pool: PostgresPool,
  { most, timeoutMs, now = performance.now.bind(performance) }: Options,
): ((key: string) => Kysely<Tables>) => {
  const shares = new Map<string, Share>()
  const isAlone = createAlone(now)
  const mostOf = (key: string) => (isAlone(key) ? most : Math.max(1, Math.floor(most / 2)))
  const views = new LRUCache<string, Kysely<Tables>>({ max: keptViews })

  const take = (key: string): Promise<void> | undefined => {
    const share = shares.get(key) ?? { used: 0, waiting: new Set() }
    shares.set(key, share)
    // A new caller does not overtake those that wait.
    if (share.waiting.size === 0 && share.used < mostOf(key)) {
      share.used++
      return undefined
    }
    return new Promise((resolve, reject) => {
      const next = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        share.waiting.delete(next)
        reject(new Error('timeout exceeded when trying to connect'))
      }, timeoutMs)
      share.waiting.add(next)
    })
  }

  const free = (key: string): void => {
    const share = shares.get(key)!
    share.used--
    const most = mostOf(key)
    for (const next of share.waiting) {
      if (share.used >= most) break
      share.waiting.delete(next)
      share.used++
      next()
    }
    if (share.used === 0) shares.delete(key)
  }

  const connect = async (key: string): Promise<PostgresPoolClient> => {
    await take(key)
    try {
      const client = await pool.connect()
      return {
        query: client.query.bind(client) as PostgresPoolClient['query'],
        release: (destroy) => {
          client.release(destroy)
          free(key)
        },
      }
    } catch (error) {
      free(key)
      throw error
    }
  }

  return (key) => {
    let view = views.get(key)
    if (!view) {
      const own: PostgresPool = { ...pool, connect: () => connect(key) }
      view = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: own }) })
      views.set(key, view)
    }
    return view
  }
}
