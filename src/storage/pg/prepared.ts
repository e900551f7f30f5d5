import type { PostgresPool, PostgresPoolClient } from 'kysely'
import type pg from 'pg'
import { hashId } from '../../lib/hash-id.ts'

/**
 * A statement that begins with this is planned once per connection. For the few that every request
 * needs: planning one cost more than twice what doing it costs.
 */
export const prepared = '/* prepared */'

// Of a pooler in between that gives each statement another session.
const lostStates = new Set(['26000', '42P05'])

/**
 * Asks by callback: the driver's own promise keeps the rows of past answers alive until the next full
 * collection, which made each young one thirteen times as long (7.6 ms instead of 0.6).
 */
export const ask = async (
  client: pg.PoolClient,
  config: pg.QueryConfig,
): Promise<pg.QueryResult> => {
  try {
    return await new Promise((resolve, reject) => {
      client.query(config, (error, result) => (error ? reject(error) : resolve(result)))
    })
  } catch (error) {
    // Of the caller, not of the socket that the answer came from.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  }
}

/** Asks one fixed statement with values as text; returns how many rows it touched. */
export type Statement = (
  values: readonly string[],
  done: (error: Error | undefined, rowCount: number) => void,
) => void

/** What the driver's connection offers to queries of other makes, such as its own cursors. */
type Wire = Pick<pg.Connection, 'stream'> & {
  parsedStatements: Record<string, string>
  submittedNamedStatements: Record<string, string>
  parse(statement: { name: string; text: string }): void
  bind(values: { statement: string; values: readonly string[] }): void
  execute(portal: { portal: string }): void
  sync(): void
}

/**
 * A statement without rows that is asked for so often that Kysely's and the driver's general way with
 * it would cost more than the rest (170 against 90 µs). It is on its way in the next tick.
 */
export const createStatement = (pool: pg.Pool, text: string): Statement => {
  const ownName = hashId(text)
  // Behind a pooler the next transaction has another session.
  let isLost = (pool.options as { isPooled?: boolean }).isPooled === true

  const queryOf = (name: string, values: readonly string[], done: Parameters<Statement>[1]) => {
    let rowCount = 0
    return {
      name,
      text,
      submit(connection: unknown) {
        const wire = connection as Wire
        const isKnown =
          name !== '' && (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name])
        wire.stream.cork()
        if (!isKnown) wire.parse({ name, text })
        if (!isKnown && name !== '') wire.submittedNamedStatements[name] = text
        wire.bind({ statement: name, values })
        wire.execute({ portal: '' })
        wire.sync()
        wire.stream.uncork()
      },
      handleCommandComplete: (message: { text: string }) => {
        rowCount = Number(message.text.slice(message.text.lastIndexOf(' ') + 1))
      },
      handleReadyForQuery: () => done(undefined, rowCount),
      handleError: (error: Error) => done(error, 0),
    }
  }

  return (values, done) =>
    pool.connect((failure, client, release) => {
      if (!client) return done(failure ?? new Error('no connection'), 0)
      const submit = (name: string): void => {
        client.query(
          queryOf(name, values, (error, rowCount) => {
            if (name !== '' && lostStates.has((error as { code?: string })?.code ?? '')) {
              isLost = true
              return submit('')
            }
            release()
            done(error, rowCount)
          }),
        )
      }
      submit(isLost ? '' : ownName)
    })
}

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
      if (isLost || !text.startsWith(prepared)) return await ask(client, { text, values })
      try {
        return await ask(client, { name: nameOf(text), text, values })
      } catch (error) {
        if (!lostStates.has((error as { code?: string }).code ?? '')) throw error
        isLost = true
        return await ask(client, { text, values })
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
