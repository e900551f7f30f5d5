import type { Installation } from '../domain/context.ts'
import { startAnnouncer } from '../workers/events/announcer.ts'
import { startNodeWatch } from '../workers/events/node-watch.ts'
import { startAuditChain } from '../workers/janitor/audit-chain.ts'
import { startJanitor } from '../workers/janitor/janitor.ts'
import { startOrganizationErasing } from '../workers/janitor/organization-erasing.ts'
import type { Access } from './access.ts'
import type { Config } from './config/schema.ts'
import type { ServiceDatabase } from './database.ts'
import type { Own } from './lifetime.ts'

/**
 * Starts the janitor, which also stores what this process knows of used credentials, and in processes with a background
 * role the audit chain and the erasing of organizations.
 */
export function startMaintenance(
  config: Config,
  parts: Installation & {
    database: ServiceDatabase
    access: Access
    newHolder(): string
    isBackground: boolean
  },
  own: Own,
): void {
  const { clock, ids, log, sealer, database, access, newHolder } = parts
  const { db, workersDb, nonceMemory } = database
  if (parts.isBackground) {
    own(
      startAuditChain({
        ...{ db: workersDb, clock, ids, log, sealer, holder: newHolder() },
        keepMs: config.audit.retention_days * 86_400_000,
      }),
    )
    own(startOrganizationErasing({ db: workersDb, clock, log, holder: newHolder() }))
  }
  own(
    startJanitor({
      ...{ db, clock, log },
      takeUsedCredentials: () => [...access.authenticator.takeUsed(), ...access.keys.takeUsed()],
      keepNonces: () => nonceMemory.keep(),
    }),
  )
}

/** Starts what notices incidents and announces operational events. */
export function startIncidents(
  parts: Pick<Installation, 'db' | 'clock' | 'log'> & {
    newHolder(): string
    isBackground: boolean
    nodes: Parameters<typeof startNodeWatch>[0]['nodes']
    limits: Parameters<typeof startAnnouncer>[0]['limits']
  },
  own: Own,
): void {
  const { db, clock, log, nodes, limits, newHolder, isBackground } = parts
  own(startNodeWatch({ db, clock, log, nodes }))
  if (isBackground) own(startAnnouncer({ db, clock, log, holder: newHolder(), limits }))
}
