import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { insertOrganization } from '../../storage/access/organizations.ts'
import { createSealer } from '../../storage/access/seal.ts'
import type { Context } from '../context.ts'
import { CreateCredential, RotateCredential } from './credentials.ts'

const { db, pool } = await freshDatabase()
const organization_id = systemIds.uuid()
const create_time = new Date()
await insertOrganization(db, { organization_id, name: 'n', domain: 'acme', create_time })
const context: Context = {
  ...{ db, clock: systemClock, ids: systemIds, log: silentLog },
  sealer: createSealer(randomBytes(32)),
  principal: { credential_id: systemIds.uuid(), organization_id, role: 'ROLE_OWNER' },
  service: 'admin',
  chain: 'admin',
  operation: 'Test',
  signal: new AbortController().signal,
}

it('an organization has at most 1000 credentials, and rotated ones that have expired make room', async () => {
  const { credential } = await CreateCredential(context, { organization_id })
  await pool.query(
    `insert into credential (credential_id, organization_id, role, name, api_key_hash, api_key_sealed,
       api_secret_sealed, create_time)
     select gen_random_uuid(), $1, 'ROLE_MEMBER', '', sha256(n::text::bytea), '', '', now()
     from generate_series(1, 998) n`,
    [organization_id],
  )
  // The last free place.
  const { credential_id } = credential
  await RotateCredential(context, { credential_id, overlap_seconds: 0 })
  // The one that was rotated makes room for another, and then nothing does.
  await CreateCredential(context, { organization_id })
  await expect(CreateCredential(context, { organization_id })).rejects.toMatchObject({
    reason: 'TOO_MANY_CREDENTIALS',
  })
  const { rows } = await pool.query('select count(*)::int from credential')
  expect(rows[0].count).toBe(1_000)
})
