import { hostname, userInfo } from 'node:os'
import type { AuditSubject, Concerns } from '../domain/audit/event.ts'
import { performAudited } from '../domain/audit/trail.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import type { Db } from '../storage/pg/database.ts'

/** Does what a command changes in the database, and records it in the audit log. */
export const audited = <result>(
  db: Db,
  {
    operation,
    request,
    service = 'cli',
  }: Pick<AuditSubject, 'operation'> & {
    request?: unknown
    service?: string
  },
  work: (concerns: Concerns) => Promise<result>,
): Promise<result> =>
  // The command line has no principal, so the event names the user of the machine.
  performAudited(
    { db, clock: systemClock, ids: systemIds },
    { actor_type: 'ACTOR_TYPE_COMMAND_LINE', client: operator(), service, operation, request },
    work,
  )

/** The user of the machine; containers often have none. */
function operator(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return `uid ${process.getuid?.() ?? '?'}@${hostname()}`
  }
}
