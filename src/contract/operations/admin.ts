// Administration: organizations, credentials, limits, usage and the audit log. Roles are data of a row (`role`), so that
// no handler decides on its own who may call it; a handler only limits owners and members to their own organization.

import Type from 'typebox'
import {
  ChainName,
  ClientNetworks,
  Count,
  Domain,
  FutureTime,
  flag,
  Id,
  Limit,
  Name,
  optional,
  Pagination,
  page,
  Role,
  Scopes,
  timeRange,
} from '../fields.ts'
import { rotationOverlap } from '../limits.ts'
import { operation } from '../operation.ts'
import { quotaNames } from '../quotas.ts'
import {
  AuditEvent,
  AuditResult,
  Credential,
  EffectiveRateLimit,
  MethodUsageRow,
  NewCredential,
  Organization,
  OrganizationDeletion,
  Quota,
  RateLimit,
  UsageRow,
} from '../records/admin.ts'
import { list } from '../variant.ts'

const limits = {
  per_second_limit: Limit,
  per_hour_limit: Limit,
  per_day_limit: Limit,
  per_month_limit: Limit,
}
// The restrictions of a credential, the same where it is created and where it is changed. A handler compares each with
// the caller's own (`domain/access/grants.ts`): a restricted key cannot make an unrestricted one.
const restrictions = {
  scopes: optional(Scopes),
  allowed_client_networks: optional(ClientNetworks),
  expire_time: optional(FutureTime),
}
// Usage is stored by day in UTC, so that a day is a name and not a time.
const Day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' })
const days = { start_day: optional(Day), end_day: optional(Day) }
// Wider than the keys and secrets that are issued now, so that their form can change without a change of the contract.
const Secret = Type.String({ minLength: 1, maxLength: 200 })

/** The administration operations (spec 4.2) and the extensions that a new installation needs. */
export const admin = {
  // The specification deletes by the pair. RevokeCredential is the way for a pair that is not known completely.
  DeleteCredential: operation({
    summary: 'Delete an API credential.',
    description:
      'Needs both halves of the pair. The key stops working at once, in every process. A member may delete the credentials of its own organization. The pair in the example of the API reference exists on a local demo only; elsewhere use one that CreateCredential answered.',
    services: 'A',
    request: { api_key: Secret, api_secret: Secret },
    response: {},
  }),
  DeleteRateLimit: operation({
    summary: 'Delete the rate limits of an organization.',
    description:
      'With `chain`, that record; without it, every record of the organization. The defaults apply from then on. It succeeds once: without a record the answer is 404.',
    services: 'A',
    role: 'ROLE_ADMIN',
    request: { organization_id: Id, chain: optional(ChainName) },
    response: {},
  }),
  GetOrganizationByDomain: operation({
    summary: 'Look up an organization by its domain.',
    services: 'A',
    request: { domain: Domain },
    response: { organization: Organization },
  }),
  GetRateLimit: operation({
    summary: 'Read one rate limit of an organization.',
    description: 'Without `chain`, the record `*`, which is the default of the organization.',
    services: 'A',
    request: { organization_id: Id, chain: optional(ChainName) },
    response: RateLimit.fields,
  }),
  ListRateLimits: operation({
    summary: 'List the rate limits of an organization.',
    services: 'A',
    request: { organization_id: Id, chain: optional(ChainName) },
    response: { data: list(RateLimit) },
  }),
  CreateOrganization: operation({
    creates: true,
    summary: 'Create an organization.',
    description: 'It succeeds once: a domain that is taken is 409.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: { name: Name, domain: Domain },
    response: { organization: Organization },
  }),
  ListOrganizations: operation({
    summary: 'List the organizations.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: page,
    response: { organizations: list(Organization), pagination: Pagination },
  }),
  CreateCredential: operation({
    creates: true,
    summary: 'Create an API credential.',
    description:
      'Key and secret are shown in this answer and never again. An owner creates credentials of its own organization. No credential can be given more than its creator has: what is left out is taken from the creator, everything where the creator is not restricted.',
    services: 'A',
    role: 'ROLE_OWNER',
    extension: true,
    request: {
      organization_id: Id,
      role: optional({ ...Role, default: 'ROLE_MEMBER' } as typeof Role),
      name: optional(Name),
      ...restrictions,
    },
    response: { credential: NewCredential },
  }),
  // It takes an idempotency key and repeats safely without one: a client that never got the answer would otherwise have
  // lost access when the overlap ends.
  RotateCredential: operation({
    summary: 'Put a new key and secret in the place of a credential; both work for a while.',
    description: `The new credential has the role, the name and the restrictions of the old one, which stops after \`overlap_seconds\`: ${rotationOverlap.defaultSeconds / 3_600} hours unless given, ${rotationOverlap.maxSeconds / 86_400} days at most, 0 for at once. Without \`credential_id\` the caller itself is rotated; owners and administrators may rotate others. Repeated, it puts another credential in the place of a new one that was never used and is older than a minute, for an answer that was lost; otherwise it is 409. The overlap never becomes longer by it.`,
    services: 'A',
    extension: true,
    creates: true,
    request: {
      credential_id: optional(Id),
      overlap_seconds: optional(
        Type.Integer({
          minimum: 0,
          maximum: rotationOverlap.maxSeconds,
          default: rotationOverlap.defaultSeconds,
          description: 'how long the old credential stays valid',
        }),
      ),
      expire_time: optional(FutureTime),
    },
    response: { credential: NewCredential },
  }),
  RevokeCredential: operation({
    summary: 'Delete an API credential without its secret.',
    description:
      'By its id or by its key, for a key that was lost or leaked. It stops working at once, in every process, and its WebSockets are closed. Owners reach the credentials of their own organization.',
    services: 'A',
    role: 'ROLE_OWNER',
    extension: true,
    request: { credential_id: optional(Id), api_key: optional(Secret) },
    anyOf: ['credential_id', 'api_key'],
    response: {},
  }),
  UpdateCredential: operation({
    summary: 'Change the name or the restrictions of a credential.',
    description:
      'What is left out stays as it is. It takes effect at once, in every process. No credential can be given more than the caller has.',
    services: 'A',
    role: 'ROLE_OWNER',
    extension: true,
    request: {
      credential_id: Id,
      name: optional(Name),
      ...restrictions,
      remove_expire_time: flag('let the credential live until it is revoked'),
    },
    anyOf: ['name', 'scopes', 'allowed_client_networks', 'expire_time', 'remove_expire_time'],
    exclusive: [['remove_expire_time', 'expire_time']],
    response: { credential: Credential },
  }),
  ListCredentials: operation({
    summary: 'List the credentials of an organization.',
    description:
      'Neither the secret nor the whole key is shown: a key alone opens the gateway. `credential_id` and `api_key_hint` identify the credential.',
    services: 'A',
    role: 'ROLE_OWNER',
    extension: true,
    request: { organization_id: Id, ...page },
    response: { credentials: list(Credential), pagination: Pagination },
  }),
  SetRateLimit: operation({
    summary: 'Set the rate limit of an organization on a chain.',
    description: 'Without `chain`, the record `*`, which is the default of the organization.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: { organization_id: Id, chain: optional(ChainName), ...limits },
    response: RateLimit.fields,
  }),
  ListEffectiveRateLimits: operation({
    summary: 'List the rate limits that apply to an organization, whatever they come from.',
    description: 'For every chain of the installation, or for one. Counts are about a second old.',
    services: 'A',
    extension: true,
    request: { organization_id: Id, chain: optional(ChainName) },
    response: { effective_rate_limits: list(EffectiveRateLimit) },
  }),
  GetUsage: operation({
    summary: 'Count the calls of an organization by key, chain, method and day.',
    description:
      'Operations and calls of the gateway. `quotas` shows how much the organization may have, and has, whatever the days. `refused` are those of the errors that a rate limit refused: the limits have counted the others, each once or, where its body is large, several times. Large bodies that a pace refuses (429) are among the others: they count once. Counts are some seconds old.',
    services: 'A',
    extension: true,
    request: {
      organization_id: Id,
      chain: optional(ChainName),
      ...days,
    },
    response: { usage: list(UsageRow), quotas: list(Quota) },
  }),
  // Apart from GetUsage: methods come from clients, so their number has a bound, and latencies would make every row large.
  ListMethodUsage: operation({
    summary: 'List the methods of the gateway by calls, errors and latency.',
    description:
      'Of all keys of the organization together, or with `per_key` for each key. Over the last 30 days unless given; at most 1,000 rows, the most called first. Latencies are those of answered calls, from buckets whose bounds double. Counts are some seconds old.',
    services: 'A',
    extension: true,
    request: {
      organization_id: Id,
      chain: optional(ChainName),
      per_key: flag('count each key apart'),
      ...days,
    },
    response: { methods: list(MethodUsageRow) },
  }),
  ListAuditEvents: operation({
    summary: 'List audit events, newest first.',
    description:
      'Every change by an operation or at the command line, refusals and failed authentications (counted by minute). An organization sees the events that concern it; ROLE_ADMIN sees all, or with `organization_id` those of one. Events are listed about a second after they ended. A page may have fewer events than `page_size`, or none, while `next_page_token` is not empty: filters look at a bounded number of events at a time.',
    services: 'A',
    extension: true,
    request: {
      organization_id: optional(Id),
      operation: optional(Type.String({ minLength: 1, maxLength: 100 })),
      credential_id: optional(Id),
      result: optional(AuditResult),
      ...timeRange,
      ...page,
    },
    response: { audit_events: list(AuditEvent), pagination: Pagination },
  }),
  SetQuota: operation({
    summary: 'Set how much an organization may have of something.',
    description:
      'Counts over all chains. What an organization has beyond a lower quota stays; it cannot add to it. Without `quota_limit` the quota of the configuration applies. GetUsage shows all quotas and what is used of them.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: {
      organization_id: Id,
      quota_name: Type.Enum(quotaNames),
      quota_limit: optional(Count),
    },
    response: { quota: Quota },
  }),
  RenameOrganization: operation({
    summary: 'Give an organization another name or domain.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: { organization_id: Id, name: optional(Name), domain: optional(Domain) },
    anyOf: ['name', 'domain'],
    response: { organization: Organization },
  }),
  DisableOrganization: operation({
    summary: 'Refuse all keys of an organization from now on.',
    description:
      'Operations, the gateway and open WebSockets end at once, in every process. Blocks are tracked on and transactions that were sent are followed on; notifications are kept and sent after EnableOrganization. The organization of the own credential cannot be disabled.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: { organization_id: Id },
    response: { organization: Organization },
  }),
  EnableOrganization: operation({
    summary: 'Accept the keys of an organization again.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: { organization_id: Id },
    response: { organization: Organization },
  }),
  // Access ends in the request. Rows may be many millions, so they are erased by a background job that can be interrupted.
  DeleteOrganization: operation({
    summary: 'Delete an organization with all that it has.',
    description:
      'Keys, gateway and WebSockets end at once; rows are erased in the background, which GetOrganizationDeletion reports. `domain` must be that of the organization, so that the wrong one is not deleted by mistake. It cannot be undone. Repeating it changes nothing.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: { organization_id: Id, domain: Domain },
    response: { deletion: OrganizationDeletion },
  }),
  GetOrganizationDeletion: operation({
    summary: 'Read the erase report of a deleted organization.',
    description: 'While it is erased, and ever after.',
    services: 'A',
    role: 'ROLE_ADMIN',
    extension: true,
    request: { organization_id: Id },
    response: { deletion: OrganizationDeletion },
  }),
}
