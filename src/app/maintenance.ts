import type { Installation } from '../domain/context.ts'
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
