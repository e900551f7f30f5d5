import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { AuditEventRow } from '../../storage/audit/tables.ts'
import { formatEnds, formatEvent, parseEnds, parseEvent } from './lines.ts'

const event: AuditEventRow = {
  sequence: 12,
  event_id: '00000000-0000-7000-8000-000000000001',
  event_time: new Date(1_700_000_000_123),
  actor_type: 'ACTOR_TYPE_CREDENTIAL',
  credential_id: null,
  role: 'ROLE_MEMBER',
  principal_organization_id: null,
  organization_id: null,
  service: 'c',
  operation: 'RegisterWallet',
  result: 'AUDIT_RESULT_SUCCEEDED',
  reason: null,
  event_count: 1,
  detail: '{"client":"192.0.2.1 – ü"}',
  detail_salt: randomBytes(16),
  detail_hash: randomBytes(32),
  hash: randomBytes(32),
  signature: randomBytes(64),
}

test('what is exported is read back as it was', () => {
  expect(parseEvent(formatEvent(event), 2)).toEqual(event)
  const bare = { ...event, detail: null, detail_salt: null, signature: null }
  expect(parseEvent(formatEvent(bare), 2)).toEqual(bare)
  const ends = {
    public_key: randomBytes(44),
    anchor_sequence: 3,
    anchor_hash: randomBytes(32),
    anchor_time: new Date(5),
    anchor_signature: randomBytes(64),
    head_sequence: 12,
    head_hash: event.hash,
    head_time: new Date(6),
    head_signature: randomBytes(64),
  }
  expect(parseEnds(formatEnds(ends))).toEqual(ends)
})

test('a file that is not an export is refused with the line number', () => {
  expect(() => parseEnds('{}')).toThrow('Line 1 of the file')
  expect(() => parseEnds('')).toThrow('Line 1 of the file')
  for (const line of ['', 'x', 'null', '{}']) expect(() => parseEvent(line, 7)).toThrow('Line 7')
})
