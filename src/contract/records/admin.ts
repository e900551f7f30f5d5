import Type from 'typebox'
import {
  ClientNetworks,
  Count,
  extension,
  Limit,
  Role,
  Scopes,
  Timestamp,
  text,
} from '../fields.ts'
import { quotaNames } from '../quotas.ts'
import { list, record } from '../variant.ts'

const orNull = <schema extends Type.TSchema>(schema: schema) => Type.Union([schema, Type.Null()])

const times = { create_time: Timestamp, update_time: Timestamp }

/** Spec 2.1. */
export const Organization = record('Organization', {
  organization_id: text,
  name: text,
  domain: text,
  disable_time: extension(orNull(Timestamp)),
  ...times,
})

/** Spec 2.3; at the top level of GetRateLimit. */
export const RateLimit = record('RateLimit', {
  organization_id: text,
  ratelimit_info: record('RateLimitInfo', {
    chain: text,
    per_second_limit: Limit,
    per_hour_limit: Limit,
    per_day_limit: Limit,
    per_month_limit: Limit,
  }),
  ...times,
})

const credential = {
  credential_id: extension(text),
  organization_id: extension(text),
  role: extension(Role),
  name: extension(text),
  scopes: extension(Scopes),
  allowed_client_networks: extension(ClientNetworks),
  expire_time: extension(Type.Union([Timestamp, Type.Null()])),
  create_time: extension(Timestamp),
}

/** A credential as it is listed. The whole key opens the gateway, so it is shown at creation only. */
export const Credential = record('Credential', {
  api_key_hint: Type.String({ description: 'the first characters of the key' }),
  ...credential,
  last_used_time: extension(Type.Union([Timestamp, Type.Null()])),
  last_used_address: extension(Type.Union([text, Type.Null()])),
  successor_credential_id: extension(
    Type.Union([Type.String({ description: 'what a rotation has put in its place' }), Type.Null()]),
  ),
})

/** Spec 2.2, at the only moment when key and secret are shown. */
export const NewCredential = record('NewCredential', {
  api_key: text,
  ...credential,
  api_secret: text,
})

/** Calls of one key, method and day. */
export const UsageRow = record('UsageRow', {
  api_key_hint: text,
  chain: text,
  network: Type.String({ description: 'empty for an operation' }),
  method: Type.String({ description: 'a method of the gateway, or an operation' }),
  day: text,
  calls: Count,
  errors: Count,
  refused: Count,
})

/** Calls of one method of the gateway, of all keys or of one. */
export const MethodUsageRow = record('MethodUsageRow', {
  chain: text,
  network: text,
  method: text,
  credential_id: Type.String({ description: 'empty where all keys are counted together' }),
  api_key_hint: Type.String({ description: 'empty too where the key is gone' }),
  calls: Count,
  errors: Count,
  refused: Count,
  p50_ms: orNull(Type.Number({ description: 'half of the answered calls were faster' })),
  p99_ms: orNull(Type.Number({ description: '99 of 100 answered calls were faster' })),
})

/** What an organization may have of something, and has. */
export const Quota = record('Quota', {
  quota_name: Type.Enum(quotaNames),
  quota_limit: Count,
  used: Count,
  is_default: Type.Boolean({ description: 'whether the limit is that of the configuration' }),
})

const sources = [
  'RATE_LIMIT_SOURCE_CHAIN',
  'RATE_LIMIT_SOURCE_ORGANIZATION',
  'RATE_LIMIT_SOURCE_DEFAULT',
] as const

/** The limits that apply on a chain, where they come from, and what is used of them. */
export const EffectiveRateLimit = record('EffectiveRateLimit', {
  chain: text,
  source: Type.Enum(sources, {
    description: 'the record of the chain, the record * of the organization, or the configuration',
  }),
  blocked: Type.Boolean({ description: 'whether a limit of 0 refuses every call' }),
  per_second_limit: Limit,
  per_hour_limit: Limit,
  per_day_limit: Limit,
  per_month_limit: Limit,
  hour_used: Count,
  day_used: Count,
  month_used: Count,
})

/** The actor of an audit event. */
export const ActorType = Type.Enum([
  'ACTOR_TYPE_CREDENTIAL',
  'ACTOR_TYPE_COMMAND_LINE',
  'ACTOR_TYPE_SERVICE',
  'ACTOR_TYPE_UNKNOWN',
])

/** The result of the action of an audit event. */
export const AuditResult = Type.Enum([
  'AUDIT_RESULT_SUCCEEDED',
  'AUDIT_RESULT_FAILED',
  'AUDIT_RESULT_REFUSED',
  'AUDIT_RESULT_UNKNOWN',
])

/** One event of the audit log. */
export const AuditEvent = record('AuditEvent', {
  sequence: Count,
  event_id: text,
  event_time: Timestamp,
  actor_type: ActorType,
  credential_id: orNull(text),
  role: orNull(text),
  principal_organization_id: orNull(text),
  organization_id: orNull(text),
  service: text,
  operation: text,
  result: AuditResult,
  reason: orNull(text),
  event_count: Count,
  client: orNull(
    Type.String({
      description:
        'the client address, or user and machine of the command line; null when it was erased, or is not of your organization',
    }),
  ),
  target: orNull(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'ids and settings that the request and its answer named; null when erased',
    }),
  ),
  hash: Type.String({ description: 'hex SHA-256 of the event and the one before it' }),
})

/** The deletion of an organization: what is erased, and what is not. */
export const OrganizationDeletion = record('OrganizationDeletion', {
  organization_id: text,
  deletion_state: Type.Enum(['DELETION_STATE_ERASING', 'DELETION_STATE_DONE']),
  request_time: Timestamp,
  finish_time: orNull(Timestamp),
  erased: list(record('ErasedTable', { table: text, rows: Count })),
  credentials_revoked: Count,
  webhooks_stopped: Count,
  transactions_canceled: Type.Integer({
    ...{ minimum: 0, description: 'managed transactions that were never broadcast' },
  }),
  transactions_in_flight: Type.Integer({
    ...{ minimum: 0, description: 'broadcast and perhaps mined later; no longer followed' },
  }),
  not_erased: Type.Array(text, { description: 'places that hold data and are not reached' }),
})
