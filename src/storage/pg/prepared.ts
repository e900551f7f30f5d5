// Statements that are planned once per connection, and one form of them that bypasses Kysely and the query class of the
// driver. `prepared.test.ts` fails when the driver changes a member that is used here.
//
// Measured gain (CPU time of a request): 90 µs instead of 170 µs for the one statement that every signed request makes,
// the storing of its nonce. Planning that statement costs more than twice its execution.

import type { PostgresPoolClient } from 'kysely'
import type pg from 'pg'
import { hashId } from '../../lib/hash-id.ts'
import type { SpanFields, Tracing } from '../../lib/tracing.ts'
import type { SharedPool } from './shares.ts'

/**
 * A statement that begins with this is planned once per connection. For those of every request or block: planning one costs
 * more than twice what doing it costs, and was a third of the time of a block. A plan can be older than the contents of
 * its tables, so each of them must read by an index even if it was planned on empty tables (`prepared-plans.itest.ts`), and
 * none may read a table that becomes empty again, as queues do: vacuumed while empty, it is planned to be read whole, and a
 * burst fills it within seconds. The columns are listed: one that a later migration adds would make the statement fail.
 */
export const prepared = '/* prepared */'

/** So many texts are prepared. Bulk inserts have one for each set of columns; further ones are planned each time. */
export const mostPrepared = 300

// Of a pooler in between that gives each statement another session.
const lostStates = new Set(['26000', '42P05'])

/**
 * Asks by callback: the driver's own promise keeps the rows of past answers alive until the next full
 * collection, which made each young one thirteen times as long (7.6 ms instead of 0.6).
 */
const ask = async (client: pg.PoolClient, config: pg.QueryConfig): Promise<pg.QueryResult> => {
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

type Query = (text: string, values: unknown[]) => Promise<pg.QueryResult>

/** How statements of one connection are asked, and what records them. */
type PoolOptions = {
  queryOf(client: pg.PoolClient): Query
  /** Statements become parts of the current trace. */
  tracing?: Tracing | undefined
}

/** The pool as Kysely uses it. */
const wrapPool = (pool: pg.Pool, { queryOf, tracing }: PoolOptions): SharedPool => {
  const known = new WeakMap<pg.PoolClient, PostgresPoolClient>()

  const wrap = (client: pg.PoolClient): PostgresPoolClient => {
    const query = queryOf(client)
    const watched = tracing ? traced(tracing, query) : query
    return {
      // Cursors are not used here.
      query: watched as unknown as PostgresPoolClient['query'],
      release: (destroy) => client.release(destroy),
    }
  }

  const lend = (client: pg.PoolClient): PostgresPoolClient => {
    const wrapped = known.get(client) ?? wrap(client)
    known.set(client, wrapped)
    return wrapped
  }

  return {
    options: pool.options,
    connect: () => pool.connect().then(lend),
    end: () => pool.end(),
    get waitingCount() {
      return pool.waitingCount
    },
  }
}

/** The pool as Kysely uses it, with prepared statements. */
export const withPrepared = (pool: pg.Pool, tracing?: Tracing): SharedPool => {
  const names = new Map<string, string>()
  let isLost = false

  const nameOf = (text: string): string | undefined => {
    if (!names.has(text) && names.size < mostPrepared) names.set(text, hashId(text))
    return names.get(text)
  }

  const queryOf =
    (client: pg.PoolClient): Query =>
    async (text, values = []) => {
      if (isLost || !text.startsWith(prepared)) return await ask(client, { text, values })
      try {
        const name = nameOf(text)
        return await ask(client, { ...(name && { name }), text, values })
      } catch (error) {
        if (!lostStates.has((error as { code?: string }).code ?? '')) throw error
        isLost = true
        return await ask(client, { text, values })
      }
    }

  return wrapPool(pool, { queryOf, tracing })
}

/**
 * A pool behind a pooler in transaction mode (PgBouncer), as Kysely uses it. Nothing is prepared by name, and the
 * settings are part of the statement that begins a transaction: a setting of the session would stay with a session
 * that another client gets next. A statement outside of a transaction has the settings of the role.
 */
export const withLocalSettings = (
  pool: pg.Pool,
  settings: readonly string[],
  tracing?: Tracing,
): SharedPool => {
  const locals = settings.map((setting) => `; set local ${setting}`).join('')
  const queryOf =
    (client: pg.PoolClient): Query =>
    async (text, values = []) => {
      if (!/^(begin|start transaction)/i.test(text)) return await ask(client, { text, values })
      await ask(client, { text: `${text}${locals}` })
      return { command: 'BEGIN', rowCount: 0, oid: 0, fields: [], rows: [] }
    }
  return wrapPool(pool, { queryOf, tracing })
}

/**
 * Records the statements of traced requests. The `log` option of Kysely does the same, but it wraps every connection
 * again each time that it is taken, and adds three promises to every statement, traced or not.
 */
const traced =
  (tracing: Tracing, query: Query): Query =>
  (text, values) =>
    tracing.traceId() === undefined
      ? query(text, values)
      : queryTraced(tracing, text, () => query(text, values))

const queryTraced = async (
  tracing: Tracing,
  text: string,
  query: () => Promise<pg.QueryResult>,
): Promise<pg.QueryResult> => {
  const begun = performance.now()
  try {
    const result = await query()
    traceStatement(tracing, text, performance.now() - begun)
    return result
  } catch (error) {
    traceStatement(tracing, text, performance.now() - begun, { error: true })
    throw error
  }
}

const shownSql = 500

/** The text of a statement has no values: they are parameters. */
const traceStatement = (
  tracing: Tracing,
  statement: string,
  durationMs: number,
  fields: SpanFields = {},
): void => {
  const text = statement.replace(prepared, '').trim().replace(/\s+/g, ' ')
  const [command = ''] = text.split(' ', 1)
  tracing.past(`sql ${command}`, durationMs, {
    'db.system.name': 'postgresql',
    'db.query.text': text.slice(0, shownSql),
    ...fields,
  })
}
