import type pg from 'pg'

// COPY writes values as the session's settings say: both sides must say the same, whatever the
// server's defaults are. A long table must not run into the pool's time limits.
const settings = {
  statement_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  lock_timeout: '10s',
  client_encoding: 'UTF8',
  timezone: 'UTC',
  datestyle: 'ISO, YMD',
  intervalstyle: 'iso_8601',
  bytea_output: 'hex',
  extra_float_digits: '1',
  search_path: 'public',
}

/**
 * Runs the work in one transaction of one connection; when it fails or is aborted, nothing remains of it. A table that is `held`
 * is not written from before the snapshot of the transaction until its end.
 */
export const inTransaction = async <T>(
  pool: pg.Pool,
  mode: 'repeatable read, read only' | 'read committed, read write',
  signal: AbortSignal,
  work: (client: pg.PoolClient) => Promise<T>,
  held?: string,
): Promise<T> => {
  signal.throwIfAborted()
  const client = await pool.connect()
  let released = false
  // Closing the connection ends whatever statement is running, and rolls back.
  const drop = () => {
    if (!released) client.release(true)
    released = true
  }
  // A connection that is destroyed emits an error; the failed statement reports it already.
  const ignore = () => {}
  client.on('error', ignore)
  signal.addEventListener('abort', drop, { once: true })
  try {
    // The signal may have been aborted while the pool was connecting.
    signal.throwIfAborted()
    await client.query(`begin transaction isolation level ${mode}`)
    // First: any query would take the snapshot.
    if (held) {
      await client.query(`set local lock_timeout = '${settings.lock_timeout}'`)
      await client.query(`lock table ${held} in share mode`)
    }
    for (const [name, value] of Object.entries(settings)) {
      // `true` limits the settings to the transaction, because the connection returns to the pool.
      await client.query('select set_config($1, $2, true)', [name, value])
    }
    const result = await work(client)
    await client.query('commit')
    if (!released) client.release()
    released = true
    return result
  } catch (error) {
    drop()
    throw signal.aborted ? signal.reason : error
  } finally {
    client.off('error', ignore)
    signal.removeEventListener('abort', drop)
  }
}
