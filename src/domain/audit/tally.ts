import type { Clock } from '../../lib/clock.ts'
import type { PendingAuditRow } from '../../storage/audit/tables.ts'
import type { AuditSubject } from './event.ts'

/** Refusals of the present minute, counted. */
export type Tally = {
  /** Counts a refusal of a known caller. */
  refused(subject: AuditSubject, reason: string): void
  /** Counts a failed authentication. */
  unauthenticated(client: string, service: string, reason: string): void
  /** The events of minutes that have ended. */
  takeEnded(): PendingAuditRow[]
  takeAll(): PendingAuditRow[]
}

const minuteMs = 60_000

/** Of what is beyond the limits: the callers are counted together. */
export const otherClients = '*'

/**
 * Counts by minute what strangers and refused callers do, so that they cannot fill the log: so many
 * different ones of a minute have an event of their own, all others share one.
 */
export function createTally(options: {
  clock: Clock
  make(subject: AuditSubject): PendingAuditRow
  maxClients?: number
  maxRefused?: number
}): Tally {
  const { clock, make, maxClients = 100, maxRefused = 500 } = options
  // Apart from each other: strangers do not push refusals of known callers out.
  const strangers = new Map<string, PendingAuditRow>()
  const refusals = new Map<string, PendingAuditRow>()
  let minute = 0
  let ended: PendingAuditRow[] = []

  const turn = (): void => {
    const now = Math.floor(clock.now() / minuteMs)
    if (now === minute) return
    minute = now
    ended.push(...strangers.values(), ...refusals.values())
    strangers.clear()
    refusals.clear()
  }

  const count = (
    map: Map<string, PendingAuditRow>,
    key: string,
    first: () => PendingAuditRow,
  ): void => {
    const known = map.get(key)
    if (known) known.event_count = Math.min(known.event_count + 1, 2_147_483_647)
    else map.set(key, first())
  }

  const refusedEvent = (subject: AuditSubject, reason: string): PendingAuditRow => ({
    ...make(subject),
    result: 'AUDIT_RESULT_REFUSED',
    reason,
  })

  return {
    refused(subject, reason) {
      turn()
      const { principal, client, service, operation } = subject
      const key = `${principal?.credential_id} ${client} ${service}/${operation} ${reason}`
      if (refusals.has(key) || refusals.size < maxRefused)
        return count(refusals, key, () => refusedEvent(subject, reason))
      const rest: AuditSubject = {
        ...{ actor_type: 'ACTOR_TYPE_UNKNOWN', client: otherClients, service, operation: '*' },
      }
      count(refusals, `${service} ${reason}`, () => refusedEvent(rest, reason))
    },
    unauthenticated(client, service, reason) {
      turn()
      const key = `${client} ${service} ${reason}`
      const isOwn = strangers.has(key) || strangers.size < maxClients
      const named = isOwn ? client : otherClients
      const subject: AuditSubject = {
        ...{ actor_type: 'ACTOR_TYPE_UNKNOWN', client: named, service, operation: 'Authenticate' },
      }
      count(strangers, isOwn ? key : `${otherClients} ${service} ${reason}`, () =>
        refusedEvent(subject, reason),
      )
    },
    takeEnded() {
      turn()
      const rows = ended
      ended = []
      return rows
    },
    takeAll() {
      const rows = [...ended, ...strangers.values(), ...refusals.values()]
      ended = []
      strangers.clear()
      refusals.clear()
      return rows
    },
  }
}
