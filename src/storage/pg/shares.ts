import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Tables } from './tables.ts'

type Share = { used: number; waiting: Set<() => void> }

// A view holds no connection: the bound is for memory only.
const keptViews = 1_000

/**
 * The database as one caller may use it: at most `most` of the connections of the pool at a time. Transactions of one
 * organization wait for each other's locks (one sender, one quota) while they hold a connection; without a share the
 * others would find none left. What waits for its share holds nothing, and gives up after `timeoutMs` as the pool does.
 */
export const createShares = (
  pool: PostgresPool,
  { most, timeoutMs }: { most: number; timeoutMs: number },
): ((key: string) => Kysely<Tables>) => {
  const shares = new Map<string, Share>()
  const views = new LRUCache<string, Kysely<Tables>>({ max: keptViews })

  const take = (key: string): Promise<void> | undefined => {
    const share = shares.get(key) ?? { used: 0, waiting: new Set() }
    shares.set(key, share)
    if (share.used < most) {
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
    const [next] = share.waiting
    if (next) {
      share.waiting.delete(next)
      next()
    } else if (--share.used === 0) shares.delete(key)
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
