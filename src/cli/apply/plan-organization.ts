// Compares an organization of the document with the installation. Nothing is changed here: every difference becomes a step with
// the operations that make it, so that `--plan` shows exactly what would run. What the document does not mention stays; with
// `--prune` what is stored beside it is removed, in lists that the document has.

import type { Path } from '../../app/config/problem.ts'
import type { Catalogue } from '../../contract/operations/catalogue.ts'
import type { QuotaName } from '../../contract/quotas.ts'
import { presentQuotas } from '../../domain/admin/quotas.ts'
import { findOrganizationByDomain } from '../../storage/access/organizations.ts'
import { everyPage } from '../local.ts'
import type { OrganizationPart } from './document.ts'
import type { PlannedPart, PlanTools, Windows } from './plan-tools.ts'
import { field, fromTo, type Ref, type Step, sameMembers } from './step.ts'

type Credential = Catalogue<'admin'>['ListCredentials']['response']['credentials'][number]
type KeyPart = NonNullable<OrganizationPart['keys']>[number]
// Where in the document a part is, for the messages about it.
type Here = { domain: string; organization: Ref; path: Path }

/** Plans an organization with its keys, limits and quotas. */
export async function planOrganization(
  part: OrganizationPart,
  path: Path,
  tools: PlanTools,
): Promise<PlannedPart & { organization: Ref }> {
  // By domain: ids are made by the service, so a document cannot know them.
  const { domain } = part
  const row = await findOrganizationByDomain(tools.local.context.db, domain)
  const organization: Ref = row ? { id: row.organization_id } : {}
  const here = { domain, organization, path }
  const own = row
    ? changeOf(part, here, { name: row.name, enabled: row.disable_time === null })
    : creationOf(part, here)
  const keys = await planKeys(part, here, tools)
  const limits = await planLimits(part, here, tools)
  const quotas = await planQuotas(part, here, tools)
  const parts = [keys, limits, quotas]
  return {
    organization,
    steps: [...own, ...parts.flatMap(({ steps }) => steps)],
    extras: parts.flatMap(({ extras }) => extras),
  }
}

function creationOf({ domain, name = domain, enabled }: OrganizationPart, here: Here): Step[] {
  const { organization, path } = here
  const create: Step = {
    mark: '+',
    subject: 'organization',
    details: [field('name', name)],
    path,
    calls: [
      {
        where: 'admin',
        operation: 'CreateOrganization',
        request: () => ({ name, domain }),
        // Later steps refer to this object, and find the id in it when they run.
        onAnswer: (answer) => {
          organization.id = (answer.organization as { organization_id: string }).organization_id
        },
      },
    ],
  }
  // Disabled after it was created: an organization cannot be created disabled.
  return enabled === false ? [create, ableStep(false, here)] : [create]
}

function changeOf(
  part: OrganizationPart,
  here: Here,
  before: { name: string; enabled: boolean },
): Step[] {
  const { organization, path } = here
  const steps: Step[] = []
  const { name, enabled } = part
  if (name !== undefined && name !== before.name)
    steps.push({
      mark: '~',
      subject: 'organization',
      details: [fromTo('name', before.name, name)],
      path: [...path, 'name'],
      calls: [
        {
          where: 'admin',
          operation: 'RenameOrganization',
          request: () => ({ organization_id: organization.id, name }),
        },
      ],
    })
  if (enabled !== undefined && enabled !== before.enabled) steps.push(ableStep(enabled, here))
  return steps
}

const ableStep = (enabled: boolean, { organization, path }: Here): Step => ({
  mark: '~',
  subject: 'organization',
  details: [fromTo('enabled', !enabled, enabled)],
  path: [...path, 'enabled'],
  calls: [
    {
      where: 'admin',
      operation: enabled ? 'EnableOrganization' : 'DisableOrganization',
      request: () => ({ organization_id: organization.id }),
    },
  ],
})

async function planKeys(
  part: OrganizationPart,
  here: Here,
  tools: PlanTools,
): Promise<PlannedPart> {
  const { keys } = part
  const planned: PlannedPart = { steps: [], extras: [] }
  if (!keys) return planned
  const { domain, organization } = here
  const stored = await listKeys(organization, tools)
  // Keys are matched by name: their ids and secrets are made by the service.
  const names = new Set<string>()
  for (const [index, key] of keys.entries()) {
    const path = [...here.path, 'keys', index]
    if (names.has(key.name)) tools.refuse([...path, 'name'], 'is the name of two keys.')
    names.add(key.name)
    const same = stored.filter(({ name }) => name === key.name)
    if (same.length > 1)
      tools.refuse(
        [...path, 'name'],
        `is the name of ${same.length} keys that exist. Revoke or rename one of them.`,
      )
    else if (same[0]) planned.steps.push(...keyChange(key, same[0], path, tools))
    else planned.steps.push(keyCreation(key, { domain, organization, path }, tools))
  }
  for (const { name, credential_id } of stored.filter((key) => !names.has(key.name))) {
    const subject = `key ${name || credential_id}`
    if (!tools.prune) planned.extras.push(`${domain}: ${subject}`)
    else
      planned.steps.push({
        mark: '-',
        subject,
        details: [],
        path: [...here.path, 'keys'],
        calls: [
          { where: 'admin', operation: 'RevokeCredential', request: () => ({ credential_id }) },
        ],
      })
  }
  return planned
}

/** The keys that count: the old half of a rotation ends by itself. */
async function listKeys({ id }: Ref, { local }: PlanTools): Promise<Credential[]> {
  if (id === undefined) return []
  const all = await everyPage(async (page) => {
    const answer = await local.run('ListCredentials', { organization_id: id, ...page })
    return { items: answer.credentials, next: answer.pagination.next_page_token }
  })
  return all.filter(({ successor_credential_id }) => successor_credential_id === null)
}

function keyCreation(key: KeyPart, { domain, organization, path }: Here, tools: PlanTools): Step {
  // The same default as that of CreateCredential, so that the plan shows it.
  const { name, role = 'member', scopes, allowed_client_networks, expire_time } = key
  return {
    mark: '+',
    subject: `key ${name}`,
    details: [
      field('role', role),
      ...(scopes ? [field('scopes', scopes)] : []),
      ...(allowed_client_networks
        ? [field('allowed_client_networks', allowed_client_networks)]
        : []),
      ...(expire_time ? [field('expire_time', expire_time)] : []),
    ],
    path,
    calls: [
      {
        where: 'admin',
        operation: 'CreateCredential',
        request: () => ({
          // Before the plan runs a new organization has no id. The text only has to pass the checks
          // of the request.
          organization_id: organization.id ?? 'new',
          role: `ROLE_${role.toUpperCase()}`,
          name,
          ...(scopes && { scopes }),
          ...(allowed_client_networks && { allowed_client_networks }),
          ...(expire_time && expire_time !== 'never' && { expire_time }),
        }),
        onAnswer: async ({ credential }) => {
          const { api_key, api_secret } = credential as { api_key: string; api_secret: string }
          await tools.onSecret({ organization: domain, key: name, api_key, api_secret })
        },
      },
    ],
  }
}

function keyChange(key: KeyPart, stored: Credential, path: Path, tools: PlanTools): Step[] {
  const { credential_id } = stored
  // UpdateCredential has no role: a key with another role is another key.
  const role = stored.role.replace('ROLE_', '').toLowerCase()
  if (key.role !== undefined && key.role !== role)
    tools.refuse(
      [...path, 'role'],
      `differs from that of the key, which is ${role} and cannot change. Give the key another name.`,
    )
  const details: string[] = []
  const change: Record<string, unknown> = {}
  for (const name of ['scopes', 'allowed_client_networks'] as const) {
    const wanted = key[name]
    if (!wanted || sameMembers(wanted, stored[name])) continue
    details.push(fromTo(name, stored[name], wanted))
    change[name] = wanted
  }
  const { expire_time } = key
  if (expire_time === 'never' && stored.expire_time !== null) {
    details.push(fromTo('expire_time', stored.expire_time, 'never'))
    change.remove_expire_time = true
    // Times are compared as times: `2027-01-01T00:00:00Z` and `2027-01-01T01:00:00+01:00` are equal.
  } else if (
    expire_time !== undefined &&
    expire_time !== 'never' &&
    !sameTime(expire_time, stored.expire_time)
  ) {
    details.push(fromTo('expire_time', stored.expire_time ?? 'never', expire_time))
    change.expire_time = expire_time
  }
  if (details.length === 0) return []
  const request = () => ({ credential_id, ...change })
  const calls = [{ where: 'admin' as const, operation: 'UpdateCredential', request }]
  return [{ mark: '~', subject: `key ${key.name}`, details, path, calls }]
}

const sameTime = (one: string, other: string | null): boolean =>
  other !== null && Date.parse(one) === Date.parse(other)

const windows = ['per_second_limit', 'per_hour_limit', 'per_day_limit', 'per_month_limit'] as const

async function planLimits(
  part: OrganizationPart,
  here: Here,
  tools: PlanTools,
): Promise<PlannedPart> {
  const planned: PlannedPart = { steps: [], extras: [] }
  const { limits } = part
  if (!limits) return planned
  const { domain, organization } = here
  const { id } = organization
  const { data } =
    id === undefined
      ? { data: [] }
      : await tools.local.run('ListRateLimits', { organization_id: id })
  const stored = new Map<string, Windows>(
    data.map(({ ratelimit_info }) => [ratelimit_info.chain, ratelimit_info]),
  )
  for (const [chain, wanted] of Object.entries(limits)) {
    if (!tools.isLimited(chain))
      tools.refuse([...here.path, 'limits', chain], 'is not a chain of the configuration.')
    const before = stored.get(chain)
    // What the document leaves out stays as it applies now.
    const base = before ?? stored.get('*') ?? tools.defaults
    const after = Object.fromEntries(
      windows.map((name) => [name, wanted[name] ?? base[name]]),
    ) as Windows
    const changed = windows.filter((name) => !before || before[name] !== after[name])
    if (changed.length === 0) continue
    const details = changed.map((name) =>
      before ? fromTo(name, before[name], after[name]) : field(name, after[name]),
    )
    planned.steps.push({
      mark: before ? '~' : '+',
      subject: `limits of ${chain}`,
      details,
      path: [...here.path, 'limits', chain],
      calls: [
        {
          where: 'admin',
          operation: 'SetRateLimit',
          request: () => ({ organization_id: organization.id ?? 'new', chain, ...after }),
        },
      ],
    })
  }
  for (const chain of [...stored.keys()].filter((name) => !Object.hasOwn(limits, name))) {
    if (!tools.prune) planned.extras.push(`${domain}: limits of ${chain}`)
    else
      planned.steps.push({
        mark: '-',
        subject: `limits of ${chain}`,
        details: [],
        path: [...here.path, 'limits'],
        calls: [
          {
            where: 'admin',
            operation: 'DeleteRateLimit',
            request: () => ({ organization_id: organization.id, chain }),
          },
        ],
      })
  }
  return planned
}

async function planQuotas(
  part: OrganizationPart,
  here: Here,
  tools: PlanTools,
): Promise<PlannedPart> {
  const planned: PlannedPart = { steps: [], extras: [] }
  const { quotas } = part
  if (!quotas) return planned
  const { domain, organization, path } = here
  const { id } = organization
  const stored = id === undefined ? [] : await presentQuotas(tools.local.context, id)
  // The document has short names; the API has the prefix.
  const nameOf = (name: string) => `QUOTA_${name.toUpperCase()}` as QuotaName
  const step = (
    mark: Step['mark'],
    name: string,
    details: string[],
    quota_limit?: number,
  ): Step => ({
    mark,
    subject: `quota ${name}`,
    details,
    path: [...path, 'quotas', name],
    calls: [
      {
        where: 'admin',
        operation: 'SetQuota',
        request: () => ({
          organization_id: organization.id ?? 'new',
          quota_name: nameOf(name),
          ...(quota_limit !== undefined && { quota_limit }),
        }),
      },
    ],
  })
  for (const [name, limit] of Object.entries(quotas)) {
    const before = stored.find(({ quota_name }) => quota_name === nameOf(name))
    // A quota equal to the default is set all the same: the default may change later.
    if (before && !before.is_default && before.quota_limit === limit) continue
    const own = before && !before.is_default
    planned.steps.push(
      own
        ? step('~', name, [fromTo('quota_limit', before.quota_limit, limit)], limit)
        : step('+', name, [field('quota_limit', limit)], limit),
    )
  }
  // Quotas of the configuration are not stored for the organization: there is nothing to remove.
  for (const { quota_name, is_default } of stored) {
    const name = quota_name.replace('QUOTA_', '').toLowerCase()
    if (is_default || Object.hasOwn(quotas, name)) continue
    if (!tools.prune) planned.extras.push(`${domain}: quota ${name}`)
    else planned.steps.push(step('-', name, []))
  }
  return planned
}
