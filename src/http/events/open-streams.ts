// The open event streams of a process: how many a key and an organization may have, and when they end. A stream ends when
// its credential changes or expires: it is judged again when the client connects again.

import { OperationError } from '../../contract/errors/errors.ts'
import type { Principal } from '../../domain/access/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { listRevisions } from '../../storage/access/credentials.ts'
import type { Change } from '../../storage/pg/changes.ts'
import type { Db } from '../../storage/pg/database.ts'
import { touchStreams } from '../../storage/webhooks/streams.ts'
import type { SseClient } from './sse.ts'

/** A stream that is open. */
export type OpenStream = {
  principal: Principal
  /** Of its credential, when it was opened. */
  revision: number
  client: SseClient
  webhook_ids: readonly string[]
  close(): void
}

/** The open streams of a process. */
export type OpenStreams = {
  /** Throws where the key or its organization has as many as it may have. */
  checkBounds(principal: Principal): void
  add(entry: OpenStream): void
  remove(entry: OpenStream): void
  /** A credential or an organization has changed. */
  changed(change: Change): void
  /** Changes may have been missed: all keys are checked. */
  recheck(): void
  count(): number
  isStopped(): boolean
  stop(): Promise<void>
}

// Below the idle limits of usual proxies, which are 30 seconds or more.
const heartbeatMs = 15_000
const recheckMs = 5_000
const touchMs = 3_600_000

/** Keeps them, and sends their heartbeats. */
export function createOpenStreams(options: {
  db: Db
  clock: Clock
  log: Log
  limits: { perKey: number; perOrganization: number }
}): OpenStreams {
  const { db, clock, log, limits } = options
  const open = new Set<OpenStream>()
  const stopping = new AbortController()

  const checkKeys = async (some: readonly OpenStream[]): Promise<void> => {
    if (some.length === 0) return
    const ids = [...new Set(some.map(({ principal }) => principal.credential_id))]
    const revisions = await listRevisions(db, ids)
    for (const entry of some)
      if (revisions.get(entry.principal.credential_id) !== entry.revision) entry.close()
  }
  const checkSoon = (some: readonly OpenStream[]) =>
    void checkKeys(some).catch((error) =>
      log.warn({ err: error }, 'keys of event streams not checked'),
    )

  /** Streams that are in use are not paused. */
  const touchSoon = () => {
    const ids = [...new Set([...open].flatMap(({ webhook_ids }) => webhook_ids))]
    void touchStreams(db, ids, new Date(clock.now())).catch((error) =>
      log.warn({ err: error }, 'use of event streams not recorded'),
    )
  }

  const beat = async () => {
    // One timer for all streams: thousands of clients would otherwise have a timer each.
    for (let turn = 1; !stopping.signal.aborted; turn++) {
      await clock.sleep(1_000, stopping.signal).catch(() => {})
      const now = clock.now()
      for (const entry of [...open])
        if ((entry.principal.restrictions?.expireAt ?? Number.POSITIVE_INFINITY) <= now)
          entry.close()
      if (turn % (recheckMs / 1_000) === 0) checkSoon([...open])
      if (turn % (touchMs / 1_000) === 0 && open.size > 0) touchSoon()
      if (turn % (heartbeatMs / 1_000) === 0) for (const { client } of open) client.beat()
    }
  }
  const beating = beat()

  return {
    checkBounds({ credential_id, organization_id }) {
      // A walk over the open streams of the process, whose number is bounded.
      const mine = [...open].filter(
        ({ principal }) => principal.organization_id === organization_id,
      )
      const ofKey = mine.filter(({ principal }) => principal.credential_id === credential_id)
      if (ofKey.length >= limits.perKey)
        throw tooMany(`The key has ${limits.perKey} event streams already.`)
      if (mine.length >= limits.perOrganization)
        throw tooMany(`The organization has ${limits.perOrganization} event streams already.`)
    },
    add: (entry) => void open.add(entry),
    remove: (entry) => void open.delete(entry),
    changed(change) {
      if (change.kind !== 'credential' && change.kind !== 'organization') return
      checkSoon(
        [...open].filter(
          ({ principal }) =>
            principal.organization_id === change.organization_id &&
            (change.kind === 'organization' || principal.credential_id === change.credential_id),
        ),
      )
    },
    recheck: () => checkSoon([...open]),
    count: () => open.size,
    isStopped: () => stopping.signal.aborted,
    async stop() {
      stopping.abort()
      for (const { close } of [...open]) close()
      await beating
    },
  }
}

const tooMany = (detail: string): OperationError =>
  new OperationError('TOO_MANY_OPEN', { detail, retryAfter: 5 })
