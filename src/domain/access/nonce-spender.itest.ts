import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { insertOrganization } from '../../storage/access/organizations.ts'
import { openDatabase } from '../../storage/pg/database.ts'
import { createNonceSpender } from './nonce-spender.ts'

const database = await freshDatabase()
const { db } = database
let statements = 0
// One connection is taken for each.
database.pool.on('acquire', () => statements++)

const organization_id = systemIds.uuid()
const now = new Date()
await insertOrganization(db, { organization_id, name: 'n', domain: 'd', create_time: now })
const credential_id = systemIds.uuid()
await db
  .insertInto('credential')
  .values({
    credential_id,
    organization_id,
    role: 'ROLE_MEMBER',
    name: '',
    api_key_hash: Buffer.alloc(32),
    api_key_sealed: Buffer.alloc(1),
    api_secret_sealed: Buffer.alloc(1),
    create_time: now,
  })
  .execute()

let used = 0
const use = (nonce = String(used++)) => ({
  credential_id,
  nonce,
  time: new Date(),
  expire_time: new Date(Date.now() + 60_000),
})

describe('the nonce spender', () => {
  it('joins concurrent calls into few statements and answers each caller', async () => {
    const spender = createNonceSpender(database)
    statements = 0
    const outcomes = await Promise.all(Array.from({ length: 300 }, () => spender.spend(use())))
    expect(new Set(outcomes)).toEqual(new Set(['spent']))
    expect(statements).toBeLessThanOrEqual(5)
  })

  it('starts the next statement beside one that takes long', async () => {
    const spender = createNonceSpender(database)
    // The first statement waits for a nonce of which it is not known yet whether it is stored.
    const nonce = 'slow'
    const held = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const other = db.transaction().execute(async (trx) => {
      const { expire_time } = use()
      await trx.insertInto('request_nonce').values({ credential_id, nonce, expire_time }).execute()
      held.resolve()
      await release.promise
    })
    await held.promise
    const slow = spender.spend(use(nonce))
    await waitFor('the first statement waits', async () => {
      const { rows } = await sql`
        select from pg_locks l join pg_stat_activity a using (pid)
        where not l.granted and l.locktype = 'transactionid'
          and a.datname = current_database()`.execute(db)
      return rows.length > 0
    })
    expect(await spender.spend(use())).toBe('spent')
    release.resolve()
    await other
    expect(await slow).toBe('reused')
  })

  it('lets one of equal nonces through, over statements and spenders', async () => {
    const spenders = [createNonceSpender(database), createNonceSpender(database, { maxBatch: 1 })]
    for (let round = 0; round < 20; round++) {
      const nonce = `equal-${round}`
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, at) => spenders[at % 2]!.spend(use(nonce))),
      )
      expect(outcomes.filter((outcome) => outcome === 'spent')).toHaveLength(1)
      expect(outcomes.filter((outcome) => outcome === 'reused')).toHaveLength(19)
    }
  })

  it('fails every caller of a failed statement, and works afterwards', async () => {
    const connection = { host: '/nowhere', user: 'nologin', database: 'none' }
    const broken = openDatabase({ connection, log: silentLog })
    const spender = createNonceSpender(broken)
    const calls = Array.from({ length: 10 }, () => spender.spend(use()))
    for (const result of await Promise.allSettled(calls)) expect(result.status).toBe('rejected')
    await expect(spender.spend(use())).rejects.toMatchObject({ code: 'ENOENT' })
    await broken.stop()
  })

  it('refuses at once when too many wait already', async () => {
    const spender = createNonceSpender(database, { maxWaiting: 3, statements: 1, maxBatch: 1 })
    const calls = Array.from({ length: 10 }, () => spender.spend(use()))
    const results = await Promise.allSettled(calls)
    const reasons = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason] : [],
    )
    expect(reasons.length).toBeGreaterThan(0)
    for (const reason of reasons)
      expect(reason).toMatchObject({ reason: 'DATABASE_UNAVAILABLE', retryAfter: 1 })
    expect(await spender.spend(use())).toBe('spent')
  })
})
