import type { Role } from '../../contract/roles.ts'
import {
  bytea,
  int2,
  int4,
  int8,
  nullable,
  oneOf,
  type RowOf,
  text,
  timestamptz,
  uuid,
} from '../pg/columns.ts'

/** The actor. */
export type ActorType =
  | 'ACTOR_TYPE_CREDENTIAL'
  | 'ACTOR_TYPE_COMMAND_LINE'
  | 'ACTOR_TYPE_SERVICE'
  | 'ACTOR_TYPE_UNKNOWN'

/** What came of it. */
export type AuditResult =
  | 'AUDIT_RESULT_SUCCEEDED'
  | 'AUDIT_RESULT_FAILED'
  | 'AUDIT_RESULT_REFUSED'
  | 'AUDIT_RESULT_UNKNOWN'

const subject = {
  event_id: uuid,
  event_time: timestamptz,
  actor_type: oneOf<ActorType>(),
  credential_id: nullable(uuid),
  role: nullable(oneOf<Role>()),
  principal_organization_id: nullable(uuid),
  organization_id: nullable(uuid),
  service: text,
  operation: text,
  reason: nullable(text),
  event_count: int4,
}

/** The tables of 0009-audit.sql. */
export const auditTables = {
  // Written before the change. One worker moves events on, so that writers do not wait for each other.
  audit_pending: { ...subject, result: nullable(oneOf<AuditResult>()), detail: text },
  audit_event: {
    sequence: int8,
    ...subject,
    result: oneOf<AuditResult>(),
    detail: nullable(text),
    // The chain covers the salted hash of the detail, so that the detail can be erased and the chain still
    // verifies.
    detail_salt: nullable(bytea),
    detail_hash: bytea,
    hash: bytea,
    signature: nullable(bytea),
  },
  audit_chain: {
    id: int2,
    public_key: bytea,
    private_key_sealed: bytea,
    // The last event that retention deleted: the chain continues from its hash.
    anchor_sequence: int8,
    anchor_hash: bytea,
    anchor_time: timestamptz,
    anchor_signature: bytea,
    head_sequence: int8,
    head_hash: bytea,
    head_time: timestamptz,
    head_signature: bytea,
  },
}

/** An event that is not in the chain yet. */
export type PendingAuditRow = RowOf<typeof auditTables.audit_pending>

/** An event of the chain. */
export type AuditEventRow = RowOf<typeof auditTables.audit_event>

/** Both ends of the chain and the key that signs them. */
export type AuditChainRow = RowOf<typeof auditTables.audit_chain>
