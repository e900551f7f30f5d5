import Type from 'typebox'
import { Count, extension, Limit, Role, Timestamp, text } from './fields.ts'
import { record } from './variant.ts'

const times = { create_time: Timestamp, update_time: Timestamp }

/** Spec 2.1. */
export const Organization = record('Organization', {
  organization_id: text,
  name: text,
  domain: text,
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
  api_key: text,
  organization_id: extension(text),
  role: extension(Role),
  name: extension(text),
  create_time: extension(Timestamp),
}

/** A credential as it is listed: without the secret. */
export const Credential = record('Credential', {
  ...credential,
  last_used_time: extension(Type.Union([Timestamp, Type.Null()])),
})

/** Spec 2.2, at the only moment when the secret is shown. */
export const NewCredential = record('NewCredential', { ...credential, api_secret: text })

/** Calls of one key, method and day. */
export const UsageRow = record('UsageRow', {
  api_key_hint: text,
  chain: text,
  network: text,
  method: text,
  day: text,
  calls: Count,
  errors: Count,
})
