import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { createSealer } from '../../storage/access/seal.ts'
import {
  countPendingEvents,
  findAuditChain,
  putPendingEvents,
  readAuditEvents,
} from '../../storage/audit/audit.ts'
import type { PendingAuditRow } from '../../storage/audit/tables.ts'
import { verifyChain } from '../../storage/audit/verify.ts'
import { chainEvents, pruneEvents, startAuditChain } from './audit-chain.ts'

const open = async () => {
  const { db } = await freshDatabase()
  const sealer = createSealer(randomBytes(32))
  const work = { db, clock: systemClock, ids: systemIds, log: silentLog, sealer }
  const put = async (change: Partial<PendingAuditRow> = {}) => {
    const row: PendingAuditRow = {
      event_id: systemIds.uuid(),
      event_time: new Date(),
      actor_type: 'ACTOR_TYPE_CREDENTIAL',
      credential_id: systemIds.uuid(),
      role: 'ROLE_MEMBER',
      principal_organization_id: systemIds.uuid(),
      organization_id: null,
      service: 'c',
      operation: 'RegisterWallet',
      result: 'AUDIT_RESULT_SUCCEEDED',
      reason: null,
      event_count: 1,
      detail: '{"client":"192.0.2.1"}',
      ...change,
    }
    await putPendingEvents(db, [row])
    return row
  }
  const verify = async () => {
    const chain = (await findAuditChain(db))!
    return await verifyChain(chain, readAuditEvents(db, { after: chain.anchor_sequence }))
  }
  const events = async () => await Array.fromAsync(readAuditEvents(db, { after: 0 }))
  return { db, work, put, verify, events }
}
const longAgo = () => new Date(Date.now() - 120_000)

describe('the audit chain', () => {
  it('takes events in batches and signs the head of each', async () => {
    const { db, work, put, verify } = await open()
    for (let count = 0; count < 7; count++) await put()
    for (const count of [3, 3, 1, 0])
      expect((await chainEvents(work, { before: longAgo(), limit: 3 })).count).toBe(count)
    expect(await verify()).toMatchObject({ count: 7, erased: 0, head: { sequence: 7 } })
    expect((await verify()).broken).toBeUndefined()
    expect(await countPendingEvents(db)).toBe(0)
  })

  it('waits for the result of a change, and records what a crash cut off as unknown', async () => {
    const { work, put, events } = await open()
    const running = await put({ result: null })
    await chainEvents(work, { before: longAgo(), limit: 10 })
    expect(await events()).toEqual([])
    await chainEvents(work, { before: new Date(Date.now() + 1), limit: 10 })
    expect(await events()).toMatchObject([
      { event_id: running.event_id, result: 'AUDIT_RESULT_UNKNOWN' },
    ])
    // Its result after all: the chain is not changed, it gets another event with the same id.
    await put({ ...running, result: 'AUDIT_RESULT_SUCCEEDED' })
    await chainEvents(work, { before: longAgo(), limit: 10 })
    expect(await events()).toMatchObject([
      { event_id: running.event_id, result: 'AUDIT_RESULT_UNKNOWN' },
      { event_id: running.event_id, result: 'AUDIT_RESULT_SUCCEEDED' },
    ])
  })

  it('verifies from its anchor after old events were removed, and reports the removal', async () => {
    const { db, work, put, verify, events } = await open()
    const old = new Date(Date.now() - 1_000_000)
    for (let count = 0; count < 5; count++) await put({ event_time: old })
    // Ids of one millisecond have no order: the later ones must come later in the chain.
    await delay(5)
    for (let count = 0; count < 2; count++) await put()
    await chainEvents(work, { before: longAgo(), limit: 100 })
    const before = new Date(Date.now() - 500_000)
    expect(await pruneEvents(work, { before, limit: 2 })).toBe(5)
    expect(await pruneEvents(work, { before, limit: 2 })).toBe(0)
    await chainEvents(work, { before: longAgo(), limit: 100 })
    expect((await verify()).broken).toBeUndefined()
    const last = (await events()).at(-1)
    expect(last).toMatchObject({ operation: 'PruneAuditEvents', actor_type: 'ACTOR_TYPE_SERVICE' })
    expect(JSON.parse(last?.detail ?? '')).toEqual({ target: { from_sequence: 1, to_sequence: 5 } })
    // Removing one more manually shows.
    await sql`delete from audit_event where sequence = 6`.execute(db)
    expect((await verify()).broken).toMatchObject({ sequence: 6, problem: 'the event is missing' })
  })

  it('stays whole while several processes write and chain at once', async () => {
    const { db, work, put, verify, events } = await open()
    const chains = [1, 2, 3].map(() =>
      startAuditChain({ ...work, holder: systemIds.uuid(), keepMs: 1e9, batch: 7, intervalMs: 5 }),
    )
    const racing = Array.from({ length: 4 }, async () => {
      // Without a lease: what a process does that was suspended and does not know yet.
      for (let round = 0; round < 10; round++) {
        await put()
        await chainEvents(work, { before: longAgo(), limit: 3 })
      }
    })
    const written = await Promise.all(
      Array.from({ length: 100 }, async () => (await put()).event_id),
    )
    await Promise.all(racing)
    await expect.poll(() => countPendingEvents(db)).toBe(0)
    await Promise.all(chains.map((chain) => chain.stop()))
    const ids = (await events()).map(({ event_id }) => event_id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toHaveLength(140)
    expect(ids).toEqual(expect.arrayContaining(written))
    expect(await verify()).toMatchObject({ count: 140 })
    expect((await verify()).broken).toBeUndefined()
  })
})
