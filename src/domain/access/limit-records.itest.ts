import type { Kysely, KyselyPlugin } from 'kysely'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { systemIds } from '../../lib/ids.ts'
import { insertOrganization } from '../../storage/access/organizations.ts'
import { upsertRateLimit } from '../../storage/access/rate-limits.ts'
import type { Tables } from '../../storage/pg/tables.ts'
import { SHIPPED_LIMITS as defaults } from '../limits/decision.ts'
import { createManualClock } from '../limits/testing/fakes.ts'
import { createLimitRecords } from './limit-records.ts'

const { db } = await freshDatabase()
let reads = 0
let before: () => Promise<void> | void = () => {}
const counting: KyselyPlugin = {
  transformQuery: ({ node }) => {
    reads++
    return node
  },
  transformResult: async ({ result }) => {
    await before()
    return result
  },
}
const counted = db.withPlugin(counting) as Kysely<Tables>

const tenant = async () => {
  const organization_id = systemIds.uuid()
  const domain = `d-${organization_id}`
  await insertOrganization(db, { organization_id, name: 'n', domain, create_time: new Date() })
  return organization_id
}
const set = (organization_id: string, chain: string, per_day_limit: number) =>
  upsertRateLimit(db, {
    organization_id,
    chain,
    per_second_limit: -1,
    per_hour_limit: -1,
    per_day_limit,
    per_month_limit: -1,
    update_time: new Date(),
  })

const open = (options: { maxEntries?: number } = {}) => {
  const clock = createManualClock(Date.now())
  return { clock, ...createLimitRecords({ db: counted, clock }, { defaults, ...options }) }
}

describe('the limits of an organization', () => {
  it('are the record of the chain, else the record *, else the defaults', async () => {
    const organization_id = await tenant()
    const { limitsOf, forget } = open()
    expect(await limitsOf(organization_id, 'c')).toEqual(defaults)
    await set(organization_id, '*', 7)
    await set(organization_id, 'c', 8)
    forget(organization_id)
    expect(await limitsOf(organization_id, 'c')).toMatchObject({ per_day_limit: 8 })
    expect(await limitsOf(organization_id, 'q')).toMatchObject({ per_day_limit: 7 })
  })

  it('are read once for all chains and then known at once', async () => {
    const organization_id = await tenant()
    const { limitsOf } = open()
    reads = 0
    await limitsOf(organization_id, 'c')
    for (const chain of ['c', 'q', 'admin'])
      expect(limitsOf(organization_id, chain)).not.toBeInstanceOf(Promise)
    expect(reads).toBe(1)
  })

  it('are read again after a minute, in case that no announcement came', async () => {
    const organization_id = await tenant()
    const { limitsOf, clock } = open()
    await limitsOf(organization_id, 'c')
    await set(organization_id, 'c', 1)
    clock.step(59_999)
    expect(limitsOf(organization_id, 'c')).toEqual(defaults)
    clock.step(1)
    expect(await limitsOf(organization_id, 'c')).toMatchObject({ per_day_limit: 1 })
  })

  it('are kept for ten minutes while the database cannot be read, and read again once it can', async () => {
    const organization_id = await tenant()
    await set(organization_id, 'c', 3)
    const { limitsOf, forget, clock } = open()
    await limitsOf(organization_id, 'c')
    before = () => {
      throw new Error('gone')
    }
    try {
      // A listener that has connected again, before the database can be read.
      forget()
      expect(await limitsOf(organization_id, 'c')).toMatchObject({ per_day_limit: 3 })
      expect(limitsOf(organization_id, 'q')).toEqual(defaults)
      clock.step(600_000)
      expect(await limitsOf(organization_id, 'c')).toMatchObject({ per_day_limit: 3 })
      clock.step(1)
      await expect(limitsOf(organization_id, 'c')).rejects.toThrow('gone')
    } finally {
      before = () => {}
    }
    await set(organization_id, 'c', 4)
    expect(await limitsOf(organization_id, 'c')).toMatchObject({ per_day_limit: 4 })
  })

  it('are not answered from memory after a change that cannot be read', async () => {
    const organization_id = await tenant()
    const { limitsOf, forget } = open()
    await limitsOf(organization_id, 'c')
    before = () => {
      throw new Error('gone')
    }
    try {
      forget(organization_id)
      await expect(limitsOf(organization_id, 'c')).rejects.toThrow('gone')
    } finally {
      before = () => {}
    }
  })

  it('are read again when all are to be forgotten', async () => {
    const organization_id = await tenant()
    const { limitsOf, forget } = open()
    await limitsOf(organization_id, 'c')
    await set(organization_id, 'c', 2)
    forget()
    expect(await limitsOf(organization_id, 'c')).toMatchObject({ per_day_limit: 2 })
  })

  it('are not kept when a change was announced while they were being read', async () => {
    const organization_id = await tenant()
    const { limitsOf, forget } = open()
    before = async () => {
      before = () => {}
      await set(organization_id, 'c', 3)
      forget(organization_id)
    }
    await limitsOf(organization_id, 'c')
    expect(await limitsOf(organization_id, 'c')).toMatchObject({ per_day_limit: 3 })
  })

  it('of more organizations than fit are forgotten, the oldest first', async () => {
    const [first, second, third] = [await tenant(), await tenant(), await tenant()]
    const { limitsOf } = open({ maxEntries: 2 })
    for (const id of [first, second, third]) await limitsOf(id, 'c')
    expect(limitsOf(third, 'c')).not.toBeInstanceOf(Promise)
    expect(limitsOf(second, 'c')).not.toBeInstanceOf(Promise)
    const again = limitsOf(first, 'c')
    expect(again).toBeInstanceOf(Promise)
    await again
  })
})
