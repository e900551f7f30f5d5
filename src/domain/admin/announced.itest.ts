import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { CrashError, createFaultyDb } from '../../../test/helpers/faulty-db.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { insertOrganization } from '../../storage/access/organizations.ts'
import { createSealer } from '../../storage/access/seal.ts'
import type { Context } from '../context.ts'
import { createCredential, DeleteCredential, RevokeCredential } from './credentials.ts'
import { revokeCredential, setEnabled } from './operator.ts'
import { DeleteRateLimit, SetRateLimit } from './rate-limits.ts'

const { db } = await freshDatabase()
const faulty = createFaultyDb(db)
const organization_id = systemIds.uuid()
await insertOrganization(db, {
  organization_id,
  name: 'n',
  domain: 'acme',
  create_time: new Date(),
})
const context: Context = {
  db: faulty.db,
  clock: systemClock,
  ids: systemIds,
  sealer: createSealer(randomBytes(32)),
  log: silentLog,
  principal: { credential_id: systemIds.uuid(), organization_id, role: 'ROLE_ADMIN' },
  service: 'admin',
  chain: 'admin',
  operation: 'Test',
  signal: new AbortController().signal,
}
const make = () => createCredential(context, { organization_id, role: 'ROLE_MEMBER', name: '' })
const limits = { per_second_limit: 1, per_hour_limit: 1, per_day_limit: 1, per_month_limit: 1 }

/** All that processes keep in memory until a change is announced. */
const state = async () => {
  const { rows } = await sql`
    select (select array_agg(credential_id order by credential_id) from credential) as credentials,
      (select array_agg(r order by chain) from rate_limit r) as limits,
      (select disable_time from organization) as disable_time`.execute(db)
  return JSON.stringify(rows[0])
}

type Change = { name: string; prepare?(): Promise<unknown>; make(): Promise<unknown> }

const pairOf = async () => {
  const { api_key, api_secret } = await make()
  return { api_key, api_secret }
}
let pair = await pairOf()
const renew = async () => {
  pair = await pairOf()
}
const changes: Change[] = [
  { name: 'DeleteCredential', prepare: renew, make: () => DeleteCredential(context, pair) },
  {
    name: 'RevokeCredential',
    prepare: renew,
    make: () => RevokeCredential(context, { api_key: pair.api_key }),
  },
  {
    name: 'a revocation by the operator',
    prepare: renew,
    make: () => revokeCredential(context, pair.api_key),
  },
  { name: 'SetRateLimit', make: () => SetRateLimit(context, { organization_id, ...limits }) },
  { name: 'DeleteRateLimit', make: () => DeleteRateLimit(context, { organization_id }) },
  {
    name: 'a disabled organization',
    make: () => setEnabled(context, organization_id, false),
  },
  { name: 'an enabled organization', make: () => setEnabled(context, organization_id, true) },
]

it.for(changes)(
  '$name is announced or does not happen, wherever the process dies',
  async ({ prepare, make }) => {
    await prepare?.()
    const before = await state()
    for (let statements = 1; ; statements++) {
      faulty.arm(statements)
      const crash = await make().then(
        () => undefined,
        (error: unknown) => error,
      )
      faulty.disarm()
      if (crash === undefined) break
      expect(crash).toBeInstanceOf(CrashError)
      expect(await state(), `killed before statement ${statements}`).toBe(before)
    }
    expect(await state()).not.toBe(before)
  },
)
