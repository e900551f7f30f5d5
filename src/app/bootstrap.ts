import { sealContext } from '../domain/access/credential-keys.ts'
import type { Principal } from '../domain/access/principal.ts'
import { createCredential } from '../domain/admin/credentials.ts'
import type { Installation } from '../domain/context.ts'
import type { Log } from '../lib/log.ts'
import { listCredentials } from '../storage/access/credentials.ts'
import { findOrganizationByDomain, insertOrganization } from '../storage/access/organizations.ts'
import type { CredentialRow } from '../storage/access/tables.ts'
import type { Db } from '../storage/pg/database.ts'
import { developmentWarning, hasDevelopmentRules } from './config/development.ts'
import type { Config } from './config/schema.ts'

/** A credential with both halves in the clear. */
export type Pair = { api_key: string; api_secret: string }

/** The organization of the embedded mode and its two credentials. */
export type Demo = { organization_id: string; admin: Pair; member: Pair }

const domain = 'demo'

/**
 * Makes sure that the embedded mode has an organization and a credential of each role. They are read
 * back at later starts, so that scripts continue working; a deleted one is made anew.
 */
export async function ensureDemo(installation: Installation): Promise<Demo> {
  const { db, ids, clock } = installation
  const fresh = {
    organization_id: ids.uuid(),
    name: 'Demo',
    domain,
    create_time: new Date(clock.now()),
  }
  // Does nothing where the domain is taken: an earlier start has made it, and the row is read
  // below.
  await insertOrganization(db, fresh)
  const organization = await findOrganizationByDomain(db, domain)
  if (!organization) throw new Error('The demo organization could not be made.')
  const { organization_id } = organization
  const admin = await ensurePair(installation, organization_id, 'ROLE_ADMIN')
  const member = await ensurePair(installation, organization_id, 'ROLE_MEMBER')
  return { organization_id, admin, member }
}

/** Logs what an operator should know about the development rules: once for a service, also when it is several processes. */
export async function warnOfDevelopment(
  config: Config,
  { db, log, hasLocalChains }: { db: Db; log: Log; hasLocalChains: boolean },
): Promise<void> {
  for (const message of [
    developmentWarning(config, hasLocalChains),
    hasDevelopmentRules(config, hasLocalChains) ? undefined : await demoWarning(db),
  ])
    if (message !== undefined) log.warn({}, message)
}

/** A warning of the demo administrator that an earlier start under the development rules left behind. */
async function demoWarning(db: Db): Promise<string | undefined> {
  const organization = await findOrganizationByDomain(db, domain)
  if (!organization || organization.disable_time !== null) return undefined
  const role = 'ROLE_ADMIN'
  const row = await findCredential(db, organization.organization_id, { role, name: nameOf(role) })
  return (
    row &&
    `The demo administrator of an earlier start still has access. If nothing uses it, run "portolan keys delete ${row.credential_id}".`
  )
}

const nameOf = (role: Principal['role']) => `embedded ${role === 'ROLE_ADMIN' ? 'admin' : 'member'}`

async function ensurePair(
  installation: Installation,
  organization_id: string,
  role: Principal['role'],
): Promise<Pair> {
  const { db, sealer } = installation
  const name = nameOf(role)
  const row = await findCredential(db, organization_id, { role, name })
  if (!row) {
    const created = await createCredential(installation, { organization_id, role, name })
    return { api_key: created.api_key, api_secret: created.api_secret }
  }
  const open = (half: 'api_key' | 'api_secret', sealed: Buffer) =>
    sealer.open(sealed, sealContext(half, row.credential_id)).toString('utf8')
  return {
    api_key: open('api_key', row.api_key_sealed),
    api_secret: open('api_secret', row.api_secret_sealed),
  }
}

/** Looks through all credentials of an organization; the demo has few. */
async function findCredential(
  db: Db,
  organization_id: string,
  { role, name }: Pick<CredentialRow, 'role' | 'name'>,
): Promise<CredentialRow | undefined> {
  let after: CredentialRow | undefined
  do {
    const rows = await listCredentials(db, organization_id, { after, limit: 100 })
    const found = rows.find((row) => row.role === role && row.name === name)
    if (found) return found
    after = rows.at(-1)
  } while (after)
  return undefined
}
