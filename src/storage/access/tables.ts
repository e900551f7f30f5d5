import type { QuotaName } from '../../contract/quotas.ts'
import type { Role } from '../../contract/roles.ts'
import {
  bool,
  bytea,
  date,
  int2,
  int4,
  int8,
  int8s,
  jsonb,
  jsonOf,
  nullable,
  oid,
  oneOf,
  type RowOf,
  someOf,
  text,
  timestamptz,
  uuid,
  xid,
} from '../pg/columns.ts'

/** A calendar window, in UTC, whose use is kept. */
export type UsagePeriod = 'hour' | 'day' | 'month'

/** What a job does; the check of the column has the same list. */
export type JobKind = 'refresh_balances' | 'cover_tokens' | 'token_metadata' | 'reread_blocks'

/** How addresses of a network are printed, by the options of its family. */
export type StoredAddressRules = { production?: boolean; ss58_prefix?: number }

/** The tables of 0002-access.sql, and those of 0001-installation.sql except operational_event. */
export const accessTables = {
  // Of 0014-replicas.sql.
  // The position of the last write, for reads on replicas: an organization reads what it has written.
  organization_write: {
    organization_id: uuid,
    lsn: int8,
    write_time: timestamptz,
  },
  network: {
    network_id: int2,
    chain: text,
    network: text,
    variants: text,
    is_default: bool,
    // What the nodes said at the first use. Another identity under the same name is refused, because its blocks would be mixed
    // with those that are stored.
    identity: nullable(text),
    create_time: timestamptz,
    is_traced: bool,
    // The end of the last walk that read all its balances again because of gaps.
    reopen_time: nullable(timestamptz),
    // Of 0019-address-rules.sql.
    address_rules: nullable(jsonOf<StoredAddressRules>()),
  },
  quota: {
    organization_id: uuid,
    quota_name: oneOf<QuotaName>(),
    quota_limit: int8,
    update_time: timestamptz,
  },
  // Open transactions have a bound instead (open_transaction_use): blocks that end them must not wait for a counter.
  quota_use: {
    organization_id: uuid,
    quota_name: oneOf<QuotaName>(),
    used: int8,
  },
  organization: {
    organization_id: uuid,
    name: text,
    domain: text,
    disable_time: nullable(timestamptz),
    create_time: timestamptz,
    update_time: timestamptz,
  },
  // The report of a deletion outlives the organization.
  organization_deletion: {
    organization_id: uuid,
    request_time: timestamptz,
    finish_time: nullable(timestamptz),
    erased: jsonb,
    credential_count: int8,
    webhook_count: int8,
    canceled_transaction_count: int8,
    in_flight_transaction_count: int8,
  },
  // The hash finds a key, so that a dump of the database grants no access.
  credential: {
    credential_id: uuid,
    organization_id: uuid,
    role: oneOf<Role>(),
    name: text,
    api_key_hash: bytea,
    api_key_sealed: bytea,
    api_secret_sealed: bytea,
    create_time: timestamptz,
    last_used_time: nullable(timestamptz),
    // How far its nonces were ahead of the clock: after a restore they are refused for that much longer.
    nonce_lead_ms: nullable(int4),
    expire_time: nullable(timestamptz),
    scopes: nullable(someOf<string>()),
    allowed_client_networks: nullable(someOf<string>()),
    // Set by a rotation, so that a repeated one finds what the first has made.
    successor_credential_id: nullable(uuid),
    // Grows with every change of permissions. The statement that stores a nonce compares it, so that a process
    // with an older cached credential notices.
    revision: nullable(int4),
    has_mac: nullable(bool),
    last_used_address: nullable(text),
  },
  installation_key: { name: text, key_sealed: bytea, create_time: timestamptz },
  // Without a foreign key: the nonces of a deleted credential expire by themselves.
  request_nonce: { credential_id: uuid, nonce: text, expire_time: timestamptz },
  // Facts about the server by which a restored or copied database is noticed: its nonces may be older than requests that were
  // accepted since, so that all requests of that time are refused.
  nonce_memory: {
    id: int2,
    trusted_after: timestamptz,
    written_by: nullable(xid),
    written_as: nullable(oid),
    system_identifier: nullable(text),
    timeline: nullable(text),
    database_oid: nullable(oid),
    seen_time: nullable(timestamptz),
    restored_after: nullable(timestamptz),
    server_start_time: nullable(timestamptz),
  },
  // The claim is committed before the operation runs, the answer with what the operation creates.
  idempotency_key: {
    credential_id: uuid,
    key_hash: bytea,
    organization_id: uuid,
    operation: text,
    request_hash: bytea,
    claim_id: uuid,
    claim_until: timestamptz,
    expire_time: timestamptz,
    answer_sealed: nullable(bytea),
  },
  rate_limit: {
    organization_id: uuid,
    chain: text,
    per_second_limit: int8,
    per_hour_limit: int8,
    per_day_limit: int8,
    per_month_limit: int8,
    create_time: timestamptz,
    update_time: timestamptz,
  },
  rate_usage: {
    organization_id: uuid,
    chain: text,
    period: oneOf<UsagePeriod>(),
    period_start: timestamptz,
    used: int8,
  },
  method_usage: {
    organization_id: uuid,
    day: date,
    credential_id: uuid,
    chain: text,
    network: text,
    method: text,
    call_count: int8,
    error_count: int8,
    refused_count: int8,
    latency_counts: nullable(int8s),
  },
  // Work that may take long and must survive a restart. `progress` lets it resume in the middle.
  job: {
    job_id: uuid,
    kind: oneOf<JobKind>(),
    organization_id: nullable(uuid),
    network_id: nullable(int2),
    payload: jsonb,
    progress: nullable(jsonb),
    attempt_count: int4,
    next_attempt_time: timestamptz,
    last_error: nullable(text),
    create_time: timestamptz,
    update_time: timestamptz,
  },
  // `epoch` is part of a key: the lock of a writer stops a takeover, which changes it, but not a renewal.
  lease: { name: text, holder: uuid, epoch: int8, expire_time: timestamptz },
}

/** A stored organization. */
export type OrganizationRow = RowOf<typeof accessTables.organization>

/** A stored credential; key and secret are sealed. */
export type CredentialRow = RowOf<typeof accessTables.credential>

/** The limits of one organization and chain. */
export type RateLimitRow = RowOf<typeof accessTables.rate_limit>
