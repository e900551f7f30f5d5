import type { Installation } from '../domain/context.ts'
import { startAuditChain } from '../workers/janitor/audit-chain.ts'
import { startJanitor } from '../workers/janitor/janitor.ts'
import { startOrganizationErasing } from '../workers/janitor/organization-erasing.ts'
import type { Access } from './access.ts'
import type { Config } from './config/schema.ts'
import type { ServiceDatabase } from './database.ts'
import type { Own } from './lifetime.ts'

/** Starts the audit chain, the erasing of organizations and the janitor. */
export function startMaintenance(
  config: Config,
  parts: Installation & { database: ServiceDatabase; access: Access },
  own: Own,
): void {
  const { clock, ids, log, sealer, database, access } = parts
  const { db, workersDb, nonceMemory } = database
  own(
    startAuditChain({
      ...{ db: workersDb, clock, ids, log, sealer, holder: ids.uuid() },
      keepMs: config.audit.retention_days * 86_400_000,
    }),
  )
  own(startOrganizationErasing({ db: workersDb, clock, log, holder: ids.uuid() }))
  own(
    startJanitor({
      ...{ db, clock, log },
      takeUsedCredentials: () => [...access.authenticator.takeUsed(), ...access.keys.takeUsed()],
      keepNonces: () => nonceMemory.keep(),
    }),
  )
}
