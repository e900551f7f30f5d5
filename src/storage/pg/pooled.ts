import type { PostgresPool, PostgresPoolClient } from 'kysely'
import type pg from 'pg'
import { ask } from './prepared.ts'

/**
 * A pool behind a pooler in transaction mode (PgBouncer), as Kysely uses it. Nothing is prepared by name, and the
 * settings are part of the statement that begins a transaction: a setting of the session would stay with a session
 * that another client gets next. A statement outside of a transaction has the settings of the role.
 */
export const withLocalSettings = (pool: pg.Pool, settings: readonly string[]): PostgresPool => {
  const locals = settings.map((setting) => `; set local ${setting}`).join('')
  const known = new WeakMap<pg.PoolClient, PostgresPoolClient>()

  const wrap = (client: pg.PoolClient): PostgresPoolClient => {
    const query = async (text: string, values: unknown[] = []) => {
      if (!/^(begin|start transaction)/i.test(text)) return await ask(client, { text, values })
      await ask(client, { text: `${text}${locals}` })
      return { command: 'BEGIN', rowCount: 0, rows: [] }
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
