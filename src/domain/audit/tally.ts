import type { Clock } from '../../lib/clock.ts'
import { clientGroup } from '../../lib/net/ip.ts'
import type { PendingAuditRow } from '../../storage/audit/tables.ts'
import type { AuditSubject } from './event.ts'

/** Counts the refusals of the current minute. */
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
const minutesPerHour = 60

/** The client of an event that counts all callers beyond the limits. */
export const otherClients = '*'

/**
 * Counts refusals by minute. A stranger controls their number, and with a network of addresses also the
 * number of different ones. So the events are bounded, in memory and in the log: at most `maxClients` of a
 * minute and `maxClientsPerHour` of an hour name their client (of IPv6 the /64), all others share one
 * event per reason. What is not stored yet is bounded by `maxEnded`.
 */
export function createTally(options: {
  clock: Clock
  make(subject: AuditSubject): PendingAuditRow
  maxClients?: number
  maxClientsPerHour?: number
  maxRefused?: number
  maxEnded?: number
}): Tally {
  const { clock, make, maxClients = 100, maxClientsPerHour = 1_000 } = options
  const { maxRefused = 500, maxEnded = 10_000 } = options
  // Two maps: strangers do not take the places of known callers.
  const strangers = new Map<string, PendingAuditRow>()
  const refusals = new Map<string, PendingAuditRow>()
  let minute = 0
  let hour = 0
  let namedThisHour = 0
  let ended: PendingAuditRow[] = []

  // Called with every count, so no timer is needed: a minute ends when the next refusal or read
  // comes.
  const turn = (): void => {
    const now = Math.floor(clock.now() / minuteMs)
    if (now === minute) return
    minute = now
    if (Math.floor(now / minutesPerHour) !== hour) {
      hour = Math.floor(now / minutesPerHour)
      namedThisHour = 0
    }
    ended.push(...strangers.values(), ...refusals.values())
    // Drops the newest: the oldest are nearest to the beginning of an attack.
    if (ended.length > maxEnded) ended.length = maxEnded
    strangers.clear()
    refusals.clear()
  }

  const count = (
    map: Map<string, PendingAuditRow>,
    key: string,
    first: () => PendingAuditRow,
  ): void => {
    const known = map.get(key)
    // The column is a 32-bit integer.
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
      const group = clientGroup(client)
      const key = `${group} ${service} ${reason}`
      const isNew = !strangers.has(key)
      const isNamed = !isNew || (strangers.size < maxClients && namedThisHour < maxClientsPerHour)
      if (isNew && isNamed) namedThisHour++
      const subject: AuditSubject = {
        actor_type: 'ACTOR_TYPE_UNKNOWN',
        client: isNamed ? group : otherClients,
        service: isNamed ? service : '*',
        operation: 'Authenticate',
      }
      count(strangers, isNamed ? key : `${otherClients} ${reason}`, () =>
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
