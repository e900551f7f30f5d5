import { randomBytes, randomUUID, randomUUIDv7 } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type FreshDatabase, freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import type { Engine } from '../../../test/helpers/postgres.ts'
import { silentLog } from '../../lib/log.ts'
import { type Db, openDatabase } from '../pg/database.ts'
import { isUniqueViolation } from '../pg/errors.ts'
import {
  deleteCredential,
  findCredentialByKeyHash,
  insertCredential,
  listCredentials,
  lockCredential,
  touchCredentials,
} from './credentials.ts'
import { addMethodUsage, listMethodTotals, listMethodUsage } from './method-usage.ts'
import { createSpendNonces, deleteExpiredNonces, type SpendNonces } from './nonces.ts'
import {
  findOrganization,
  findOrganizationByDomain,
  insertOrganization,
  listOrganizations,
  setOrganizationDisabled,
} from './organizations.ts'
import { deleteRateLimits, findRateLimit, listRateLimits, upsertRateLimit } from './rate-limits.ts'
import { addRateUsage, deleteOldRateUsage, loadRateUsage, periodStarts } from './rate-usage.ts'
import type { CredentialRow, OrganizationRow } from './tables.ts'

const time = new Date('2026-11-15T10:20:30.456Z')
const later = new Date(time.getTime() + 60_000)

const makeOrganization = async (db: Db, create_time = time): Promise<OrganizationRow> => {
  const organization_id = randomUUIDv7()
  const domain = `d-${organization_id}`
  return (await insertOrganization(db, { organization_id, name: 'Name', domain, create_time }))!
}

const makeCredential = async (
  db: Db,
  organization_id: string,
  create_time = time,
): Promise<CredentialRow> =>
  (await insertCredential(db, {
    credential_id: randomUUIDv7(),
    organization_id,
    role: 'ROLE_MEMBER',
    name: 'key',
    api_key_hash: randomBytes(32),
    api_key_sealed: randomBytes(40),
    api_secret_sealed: randomBytes(40),
    create_time,
  }))!

const limits = {
  per_second_limit: 1,
  per_hour_limit: -1,
  per_day_limit: 0,
  per_month_limit: 2 ** 50,
}

describe.each<Engine>(['embedded', 'system'])('storage on %s', (engine) => {
  describe.skipIf(!hasEngine(engine))('a server', () => {
    let database: FreshDatabase
    let db: Db
    beforeAll(async () => {
      database = await freshDatabase(engine)
      db = database.db
      return database.stop
    })

    describe('organizations', () => {
      test('are found by id and by domain', async () => {
        const made = await makeOrganization(db)
        expect(made).toMatchObject({ disable_time: null, create_time: time, update_time: time })
        expect(await findOrganization(db, made.organization_id)).toEqual(made)
        expect(await findOrganizationByDomain(db, made.domain)).toEqual(made)
        expect(await findOrganization(db, randomUUID())).toBeUndefined()
        expect(await findOrganizationByDomain(db, 'unknown')).toBeUndefined()
      })

      test('a domain is given once, also to twenty at once', async () => {
        const results = await Promise.all(
          Array.from({ length: 20 }, () =>
            insertOrganization(db, {
              organization_id: randomUUIDv7(),
              name: 'n',
              domain: 'same',
              create_time: time,
            }),
          ),
        )
        expect(results.filter(Boolean)).toHaveLength(1)
      })

      test.each(['', 'A', 'a--b', '-a', 'a-', 'a_b', 'a\n', 'a'.repeat(51)])(
        'the domain %j is refused by the schema too',
        async (domain) => {
          const bad = { organization_id: randomUUIDv7(), name: 'n', domain, create_time: time }
          await expect(insertOrganization(db, bad)).rejects.toThrow('organization_domain_check')
        },
      )

      test('pages have no duplicates and no holes, though many rows share one time', async () => {
        const old = new Date('2001-01-01T00:00:00Z')
        const made = new Set<string>()
        for (let i = 0; i < 7; i++) made.add((await makeOrganization(db, old)).organization_id)
        const seen: string[] = []
        let page = await listOrganizations(db, { limit: 3 })
        while (page.length > 0 && page[0]!.create_time <= old) {
          seen.push(...page.filter((row) => row.create_time <= old).map((r) => r.organization_id))
          page = await listOrganizations(db, { after: page.at(-1)!, limit: 3 })
        }
        expect(seen).toHaveLength(7)
        expect(new Set(seen)).toEqual(made)
      })
    })

    describe('credentials', () => {
      test('are found by the hash of the key, with their organization', async () => {
        const { organization_id } = await makeOrganization(db)
        const made = await makeCredential(db, organization_id)
        expect(await findCredentialByKeyHash(db, made.api_key_hash)).toEqual({
          ...made,
          disable_time: null,
        })
        await setOrganizationDisabled(db, {
          organization_id,
          disable_time: later,
          update_time: later,
        })
        expect(await findCredentialByKeyHash(db, made.api_key_hash)).toMatchObject({
          disable_time: later,
        })
        expect(await findCredentialByKeyHash(db, randomBytes(32))).toBeUndefined()
      })

      test('need an organization and a key of their own', async () => {
        const { organization_id } = await makeOrganization(db)
        const made = await makeCredential(db, organization_id)
        const { last_used_time: _, ...copy } = made
        expect(
          await insertCredential(db, { ...copy, organization_id: randomUUID() }),
        ).toBeUndefined()
        const error = await insertCredential(db, { ...copy, credential_id: randomUUID() }).catch(
          (reason: unknown) => reason,
        )
        expect(isUniqueViolation(error, 'credential_api_key_hash_key')).toBe(true)
      })

      test('are deleted by their own organization only', async () => {
        const [mine, other] = [await makeOrganization(db), await makeOrganization(db)]
        const { credential_id, api_key_hash } = await makeCredential(db, mine.organization_id)
        const { organization_id } = mine
        expect(await deleteCredential(db, { ...other, credential_id })).toBe(false)
        expect(await deleteCredential(db, { organization_id, credential_id })).toBe(true)
        expect(await deleteCredential(db, { organization_id, credential_id })).toBe(false)
        expect(await findCredentialByKeyHash(db, api_key_hash)).toBeUndefined()
      })

      test('are listed in pages of their organization', async () => {
        const { organization_id } = await makeOrganization(db)
        await makeCredential(db, (await makeOrganization(db)).organization_id)
        const made = [later, time, time].map((at) => makeCredential(db, organization_id, at))
        const ids = (await Promise.all(made)).map((row) => row.credential_id)
        const first = await listCredentials(db, organization_id, { limit: 2 })
        const rest = await listCredentials(db, organization_id, { after: first[1], limit: 2 })
        expect([...first, ...rest].map((row) => row.credential_id)).toEqual([
          ...ids.slice(1).sort(),
          ids[0],
        ])
      })

      test('remember when they were last used, never an earlier time', async () => {
        const { organization_id } = await makeOrganization(db)
        const ids = [
          (await makeCredential(db, organization_id, time)).credential_id,
          (await makeCredential(db, organization_id, later)).credential_id,
        ]
        const uses = ids.map((credential_id, at) => ({
          credential_id,
          client: at === 0 ? '192.0.2.1' : undefined,
        }))
        await touchCredentials(db, uses, later)
        const unknown = { credential_id: randomUUID(), client: '192.0.2.2' }
        await touchCredentials(db, [...uses, unknown], time)
        await touchCredentials(db, [], later)
        const rows = await listCredentials(db, organization_id, { limit: 9 })
        expect(rows.map((row) => row.last_used_time)).toEqual([later, later])
        expect(rows.map((row) => row.last_used_address)).toEqual(['192.0.2.1', null])
      })

      test('whose row is locked are not waited for, and named', async () => {
        const { organization_id } = await makeOrganization(db)
        const [held, free] = [
          (await makeCredential(db, organization_id, time)).credential_id,
          (await makeCredential(db, organization_id, later)).credential_id,
        ]
        const uses = [held, free].map((credential_id) => ({ credential_id, client: '192.0.2.1' }))
        const trx = await db.startTransaction().execute()
        try {
          await lockCredential(trx, held)
          expect(await touchCredentials(db, uses, later)).toEqual([uses[0]])
        } finally {
          await trx.rollback().execute()
        }
        expect(await touchCredentials(db, uses, later)).toEqual([])
        const rows = await listCredentials(db, organization_id, { limit: 9 })
        expect(rows.map((row) => row.last_used_time)).toEqual([later, later])
      })
    })

    describe('nonces', () => {
      const spendNonces: SpendNonces = (uses) => createSpendNonces(database)(uses)
      const setup = async () => {
        const { organization_id } = await makeOrganization(db)
        const { credential_id } = await makeCredential(db, organization_id)
        return { organization_id, credential_id, nonce: '1', time, expire_time: later }
      }

      test('of 100 parallel copies exactly one is spent', async () => {
        const use = await setup()
        const outcomes = await Promise.all(Array.from({ length: 100 }, () => spendNonces([use])))
        expect(outcomes.flat().sort()).toEqual([...Array(99).fill('reused'), 'spent'])
      })

      test('a batch is answered in order, and equal ones in it count once', async () => {
        const use = await setup()
        const other = await setup()
        const stranger = { ...use, credential_id: randomUUID() }
        await spendNonces([{ ...use, nonce: '0' }])
        const batch = [use, use, { ...use, nonce: '0' }, stranger, other, stranger, use]
        expect(await spendNonces(batch)).toEqual([
          'spent',
          'reused',
          'reused',
          'gone',
          'spent',
          'gone',
          'reused',
        ])
        expect(await spendNonces([])).toEqual([])
      })

      test('overlapping batches in any order: no deadlock, each nonce once', async () => {
        const use = await setup()
        const uses = Array.from({ length: 50 }, (_, i) => ({ ...use, nonce: String(i) }))
        const batches = Array.from({ length: 16 }, (_, i) => (i % 2 ? uses : uses.toReversed()))
        const outcomes = await Promise.all(batches.map((batch) => spendNonces(batch)))
        expect(outcomes.flat().filter((outcome) => outcome === 'spent')).toHaveLength(50)
      })

      test('a deleted credential and a disabled organization are gone at once', async () => {
        const deleted = await setup()
        const disabled = await setup()
        await deleteCredential(db, deleted)
        await setOrganizationDisabled(db, { ...disabled, disable_time: time, update_time: time })
        expect(await spendNonces([deleted, disabled])).toEqual(['gone', 'gone'])
        await setOrganizationDisabled(db, { ...disabled, disable_time: null, update_time: later })
        expect(await spendNonces([disabled])).toEqual(['spent'])
      })

      test('expired ones are forgotten, a bounded number at a time', async () => {
        await deleteExpiredNonces(db, new Date(8e15), 10_000)
        const use = await setup()
        const uses = ['1', '2', '3'].map((nonce) => ({ ...use, nonce, expire_time: time }))
        await spendNonces([...uses, { ...use, nonce: '4' }])
        expect(await deleteExpiredNonces(db, later, 2)).toBe(2)
        expect(await deleteExpiredNonces(db, later, 2)).toBe(1)
        expect(await deleteExpiredNonces(db, later, 2)).toBe(0)
      })
    })

    describe('rate limits', () => {
      test('are set, replaced, listed and deleted per chain', async () => {
        const { organization_id } = await makeOrganization(db)
        const record = { organization_id, chain: 'c', ...limits }
        const made = await upsertRateLimit(db, { ...record, update_time: time })
        expect(made).toEqual({ ...record, create_time: time, update_time: time })
        const changed = { ...record, per_second_limit: 7, update_time: later }
        expect(await upsertRateLimit(db, changed)).toEqual({ ...changed, create_time: time })
        await upsertRateLimit(db, { ...record, chain: '*', update_time: time })
        expect(await findRateLimit(db, organization_id, 'c')).toMatchObject({ per_second_limit: 7 })
        expect(await findRateLimit(db, organization_id, 't')).toBeUndefined()
        const chains = async (chain?: string) =>
          (await listRateLimits(db, organization_id, chain)).map((row) => row.chain)
        expect(await chains()).toEqual(['*', 'c'])
        expect(await chains('c')).toEqual(['c'])
        expect(await deleteRateLimits(db, randomUUID())).toBe(0)
        expect(await deleteRateLimits(db, organization_id, 'c')).toBe(1)
        expect(await deleteRateLimits(db, organization_id)).toBe(1)
        expect(await chains()).toEqual([])
      })

      test('need an organization', async () => {
        const orphan = { organization_id: randomUUID(), chain: 'c', ...limits, update_time: time }
        expect(await upsertRateLimit(db, orphan)).toBeUndefined()
      })
    })

    describe('usage', () => {
      test('windows add up over replicas that flush at once, and answer the totals', async () => {
        const organization_id = randomUUID()
        const starts = periodStarts(time)
        const deltas = (['hour', 'day', 'month'] as const).flatMap((period) =>
          ['a', 'b'].map((chain) => ({
            organization_id,
            chain,
            period,
            period_start: starts[period],
            used: 5,
          })),
        )
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            addRateUsage(db, i % 2 ? deltas : deltas.toReversed()),
          ),
        )
        expect(results.flat()).toHaveLength(120)
        expect(Math.max(...results.flat().map((row) => row.used))).toBe(100)
        expect(await loadRateUsage(db, organization_id, 'a', time)).toEqual({
          hour: 100,
          day: 100,
          month: 100,
        })
        const doubled = [...deltas, ...deltas].filter((delta) => delta.chain === 'a')
        expect((await addRateUsage(db, doubled)).map((row) => row.used)).toEqual([110, 110, 110])
        const nextHour = new Date(time.getTime() + 3_600_000)
        expect(await loadRateUsage(db, organization_id, 'a', nextHour)).toMatchObject({
          hour: 0,
          day: 110,
        })
        expect(await addRateUsage(db, [])).toEqual([])
        expect(await deleteOldRateUsage(db, time)).toBe(0)
        const afterYears = new Date(time.getTime() + 800 * 86_400_000)
        expect(await deleteOldRateUsage(db, afterYears)).toBeGreaterThanOrEqual(6)
        expect(await loadRateUsage(db, organization_id, 'a', time)).toMatchObject({ month: 0 })
      })

      test('methods are counted per credential and day, and listed for their organization', async () => {
        const [organization_id, credential_id] = [randomUUID(), randomUUID()]
        const use = {
          organization_id,
          credential_id,
          chain: 'c',
          network: 'mainnet',
          method: 'evm_call',
          day: '2026-11-15',
          call_count: 2,
          error_count: 1,
          refused_count: 1,
        }
        const other = { ...use, method: 'evm_blockNumber', day: '2026-11-16' }
        await Promise.all(
          Array.from({ length: 10 }, (_, i) =>
            addMethodUsage(db, i % 2 ? [use, other] : [other, use]),
          ),
        )
        const days = { from_day: '2026-11-15', to_day: '2026-11-16', limit: 100 }
        const total = { call_count: 20, error_count: 10, refused_count: 10 }
        expect(await listMethodUsage(db, organization_id, days)).toEqual([
          { ...use, ...total },
          { ...other, ...total },
        ])
        expect(
          await listMethodUsage(db, organization_id, { ...days, method: 'evm_call' }),
        ).toHaveLength(1)
        expect(await listMethodUsage(db, organization_id, { ...days, chain: 'q' })).toEqual([])
        expect(await listMethodUsage(db, randomUUID(), days)).toEqual([])
      })

      test('latencies of methods are added up over days, and keys where that is wanted', async () => {
        const organization_id = randomUUID()
        const [one, two] = ['1', '2'].map(
          (digit) => `${digit.repeat(8)}-1111-4111-8111-111111111111`,
        )
        const use = {
          ...{ organization_id, credential_id: one!, chain: 'c', network: 'mainnet', method: 'a' },
          ...{ day: '2026-11-15', call_count: 2, error_count: 0, refused_count: 0 },
        }
        await addMethodUsage(db, [use, { ...use, latency_counts: [1, 0, 2] }])
        await addMethodUsage(db, [{ ...use, day: '2026-11-16', latency_counts: [0, 1, 0] }])
        await addMethodUsage(db, [{ ...use, latency_counts: [1, 0, 1] }])
        await addMethodUsage(db, [{ ...use, credential_id: two!, latency_counts: [0, 5, 0] }])
        // An operation has no network, and no latency.
        await addMethodUsage(db, [{ ...use, network: '', method: 'GetWallet' }])
        const days = { from_day: '2026-11-15', to_day: '2026-11-16', limit: 10 }
        const row = {
          chain: 'c',
          network: 'mainnet',
          method: 'a',
          error_count: 0,
          refused_count: 0,
        }
        expect(await listMethodTotals(db, organization_id, { ...days, isPerKey: false })).toEqual([
          { ...row, credential_id: null, call_count: 10, latency_counts: [2, 6, 3] },
        ])
        expect(await listMethodTotals(db, organization_id, { ...days, isPerKey: true })).toEqual([
          { ...row, credential_id: one, call_count: 8, latency_counts: [2, 1, 3] },
          { ...row, credential_id: two, call_count: 2, latency_counts: [0, 5, 0] },
        ])
        expect(
          await listMethodTotals(db, organization_id, { ...days, isPerKey: true, chain: 'q' }),
        ).toEqual([])
      })
    })

    test('a pool of one connection serves many callers', async () => {
      const single = openDatabase({ connection: database.connection, log: silentLog, max: 1 })
      await Promise.all(Array.from({ length: 50 }, () => findOrganization(single.db, randomUUID())))
      await single.stop()
    })
  })
})
