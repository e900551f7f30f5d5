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
import {
  createCredential,
  DeleteCredential,
  RevokeCredential,
  removeCredential,
} from './credentials.ts'
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
  const { api_key, api_secret, credential_id } = await make()
  return { api_key, api_secret, credential_id }
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

it('a change of access is published behind its commit and before its answer, also where the answer of the commit is lost', async () => {
  const published: unknown[] = []
  const publishing: Context = {
    ...context,
    publishChange: async (change) => {
      const { rows } = await sql<{ count: string }>`
        select count(*) from credential where credential_id = ${pair.credential_id}`.execute(db)
      published.push({ ...change, left: Number(rows[0]?.count) })
    },
  }
  await renew()
  await RevokeCredential(publishing, { api_key: pair.api_key })
  expect(published.splice(0)).toMatchObject([{ kind: 'credential', left: 0 }])

  await setEnabled(publishing, organization_id, false)
  await setEnabled(publishing, organization_id, true)
  expect(published.splice(0)).toMatchObject([{ kind: 'organization' }, { kind: 'organization' }])

  await renew()
  const lost: Context = {
    ...publishing,
    db: {
      transaction: () => ({
        execute: async (act: (trx: unknown) => unknown) => {
          await db.transaction().execute(act as never)
          throw new CrashError()
        },
      }),
    } as never,
  }
  await expect(removeCredential(lost, { ...pair, organization_id } as never)).rejects.toThrow()
  expect(published).toMatchObject([{ kind: 'credential', left: 0 }])
})
