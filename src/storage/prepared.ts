import type { PostgresPool, PostgresPoolClient } from 'kysely'
import type pg from 'pg'
import { hashId } from '../lib/hash-id.ts'

/**
 * A statement that begins with this is planned once per connection. For the few that every request
 * needs: planning one cost more than twice what doing it costs.
 */
export const prepared = '/* prepared */'

// Of a pooler in between that gives each statement another session.
const lostStates = new Set(['26000', '42P05'])

/** The pool as Kysely uses it, with prepared statements. */
export const withPrepared = (pool: pg.Pool): PostgresPool => {
  const names = new Map<string, string>()
  const known = new WeakMap<pg.PoolClient, PostgresPoolClient>()
  let isLost = false

  const nameOf = (text: string): string => {
    const name = names.get(text) ?? hashId(text)
    names.set(text, name)
    return name
  }

  const wrap = (client: pg.PoolClient): PostgresPoolClient => {
    const query = async (text: string, values: unknown[] = []) => {
      if (isLost || !text.startsWith(prepared)) return client.query(text, values)
      try {
        return await client.query({ name: nameOf(text), text, values })
      } catch (error) {
        if (!lostStates.has((error as { code?: string }).code ?? '')) throw error
        isLost = true
        return await client.query(text, values)
      }
    }
    return {
      // Cursors are not used here.
      query: query as unknown as PostgresPoolClient['query'],
      release: (destroy) => client.release(destroy),
    }
  }

  return {
    options: pool.options,
    connect: async () => {
      const client = await pool.connect()
      const wrapped = known.get(client) ?? wrap(client)
      known.set(client, wrapped)
      return wrapped
    },
    end: () => pool.end(),
  }
}
