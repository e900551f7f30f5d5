import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../test/helpers/database.ts'
import { createCredential } from '../domain/admin/credentials.ts'
import type { Installation } from '../domain/context.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import { silentLog } from '../lib/log.ts'
import { createSealer } from '../storage/access/seal.ts'
import { ensureDemo } from './bootstrap.ts'

const open = async (): Promise<Installation & { count(): Promise<number> }> => {
  const { db, pool } = await freshDatabase()
  const sealer = createSealer(randomBytes(32))
  const count = async () => (await pool.query('select count(*)::int from credential')).rows[0].count
  return { db, clock: systemClock, ids: systemIds, sealer, log: silentLog, count }
}

describe('the demo organization', () => {
  it('is made once, with a credential of each role, and found again', async () => {
    const installation = await open()
    const first = await ensureDemo(installation)
    expect(Object.keys(first)).toEqual(['organization_id', 'admin', 'member'])
    expect(Object.keys(first.admin)).toEqual(['api_key', 'api_secret'])
    expect(first.admin.api_key).not.toBe(first.member.api_key)
    expect(await ensureDemo(installation)).toEqual(first)
    expect(await installation.count()).toBe(2)
  })

  it('keeps its credentials however many others the organization has', async () => {
    const installation = await open()
    const first = await ensureDemo(installation)
    const { organization_id } = first
    await installation.db.deleteFrom('credential').execute()
    for (let made = 0; made < 120; made++)
      await createCredential(installation, { organization_id, role: 'ROLE_MEMBER', name: 'other' })
    const second = await ensureDemo(installation)
    expect(second.admin).not.toEqual(first.admin)
    expect(await ensureDemo(installation)).toEqual(second)
    expect(await installation.count()).toBe(122)
  })
})
