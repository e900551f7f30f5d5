import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import type { Log } from '../../lib/log.ts'
import { createOutage } from '../../lib/outage.ts'
import type { Connection, Db } from './database.ts'
import { isDatabaseUnavailable } from './errors.ts'
import { prepared } from './prepared.ts'

/** The message to replicas: something that they may have cached has changed. */
export type Change =
  | { kind: 'credential'; organization_id: string; credential_id: string }
  | { kind: 'organization'; organization_id: string }
  | { kind: 'rate_limit'; organization_id: string }
  | { kind: 'wake'; topic: string }
  /** Something is about to be registered on a network that may not be tracked yet. */
  | { kind: 'track'; chain: string; network: string }
  /** A process lists the open WebSockets, of one organization or of all. */
  | { kind: 'websockets'; from: string; of: string | null }
  /** A process lists the nodes. */
  | { kind: 'nodes'; from: string }
  /** The blocks of a tracked network in this range were removed. */
  | { kind: 'reorganization'; network_id: number; from_block: number; to_block: number }

const channel = 'portolan_change'
const firstRetryMs = 100
const lastRetryMs = 5_000
const heartbeatMs = 15_000
const heartbeatTimeoutMs = 5_000

/** Notifies all replicas of a change; inside a transaction, when and if that commits. */
export const notifyChange = async (db: Db, change: Change): Promise<void> => {
  await sql`${sql.raw(prepared)} select pg_notify(${channel}, ${JSON.stringify(change)})`.execute(
    db,
  )
}

const checkListening = async (client: pg.Client): Promise<void> => {
  const { rows } = await client.query<{ name: string }>(
    'select name from pg_listening_channels() c (name)',
  )
  if (!rows.some(({ name }) => name === channel))
    throw new Error(
      'The session of the change listener is shared by a pooler: set database.direct_url to the server itself.',
    )
}

const parseChange = (payload: string | undefined): Change | undefined => {
  try {
    return JSON.parse(payload ?? '') as Change
  } catch {
    return undefined
  }
}

/**
 * Listens until stopped, and connects again whenever the connection is lost. `onReconnect` is called
 * at every connect, the first one too: what was cached before may be out of date. Changes are a
 * quick hint, not a guarantee: caches bound their age as well.
 */
export const listenForChanges = (options: {
  connection: Connection
  onChange(change: Change): void
  onReconnect(): void
  /** From now until the next `onReconnect` nothing is heard. */
  onLost?(): void
  /** Called with the session when it begins and at every heartbeat. */
  onSession?(session: pg.Client): Promise<void>
  log: Log
}): { stop(): Promise<void> } => {
  const { connection, onChange, onReconnect, onLost, onSession, log } = options
  const stopping = new AbortController()
  const outage = createOutage({
    ...{ log, now: Date.now },
    begins: 'change listener lost its connection',
    ends: 'change listener is connected again',
    isPlain: isDatabaseUnavailable,
  })

  const deliver = (payload: string | undefined): void => {
    const change = parseChange(payload)
    try {
      if (change) onChange(change)
      else log.warn({ payload }, 'unreadable change notification')
    } catch (error) {
      // Thrown on, it would end the process from inside the driver's event.
      log.error({ err: error, change }, 'change handler failed')
    }
  }

  // Resolves when the connection is lost or we stop.
  const listen = async (onReady: () => void): Promise<void> => {
    const client = new pg.Client({
      ...connection,
      application_name: 'portolan listener',
      connectionTimeoutMillis: heartbeatTimeoutMs,
      query_timeout: heartbeatTimeoutMs,
      keepAlive: true,
    })
    const lost = new AbortController()
    client.on('error', (error) => lost.abort(error))
    client.on('end', () => lost.abort(new Error('connection closed')))
    client.on('notification', ({ payload }) => deliver(payload))
    const ended = AbortSignal.any([lost.signal, stopping.signal])
    try {
      await client.connect()
      await client.query(`listen ${channel}`)
      await checkListening(client)
      await onSession?.(client)
      onReady()
      while (!ended.aborted) {
        await delay(heartbeatMs, undefined, { signal: ended }).catch(() => {})
        if (ended.aborted) break
        // A peer that vanished without closing the connection would stop all notifications unnoticed, and so would a
        // pooler that has given the session to another client.
        await checkListening(client)
        await onSession?.(client)
      }
      if (!stopping.signal.aborted) throw lost.signal.reason
    } finally {
      // Not awaited on a dead peer: its answer would never come.
      await Promise.race([client.end(), delay(1_000, undefined, { ref: false })]).catch(() => {})
    }
  }

  const run = async (): Promise<void> => {
    let retryMs = firstRetryMs
    while (!stopping.signal.aborted) {
      try {
        await listen(() => {
          retryMs = firstRetryMs
          outage.recovered()
          onReconnect()
        })
      } catch (error) {
        if (stopping.signal.aborted) return
        onLost?.()
        outage.failed(error, { retry_ms: retryMs })
        await delay(retryMs, undefined, { signal: stopping.signal }).catch(() => {})
        retryMs = Math.min(retryMs * 2, lastRetryMs)
      }
    }
  }

  const running = run()
  return {
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
