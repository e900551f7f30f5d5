import { describe, expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { captureLog } from '../../../test/helpers/log-capture.ts'
import { createManualClock } from '../../domain/limits/testing/fakes.ts'
import type { Clock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { insertOrganization } from '../../storage/access/organizations.ts'
import { startJanitor } from './janitor.ts'

const { db, pool } = await freshDatabase()
const start = Date.UTC(2026, 4, 20)

const open = async (used: string[][] = [], log = silentLog) => {
  const clock = createManualClock(start)
  let sweeps = 0
  const counting: Clock = {
    ...clock,
    sleep: (ms, signal) => {
      sweeps++
      return clock.sleep(ms, signal)
    },
  }
  const takeUsedCredentials = () =>
    (used.shift() ?? []).map((credential_id) => ({ credential_id, client: undefined }))
  const janitor = startJanitor({ db, clock: counting, log, takeUsedCredentials })
  onTestFinished(janitor.stop)
  const swept = async (times: number) => {
    await expect.poll(() => sweeps).toBe(times)
  }
  return { clock, janitor, swept }
}

const count = async (table: string, where = 'true'): Promise<number> =>
  (await pool.query(`select count(*)::int from ${table} where ${where}`)).rows[0].count

const addNonces = (amount: number, expire_time: number) =>
  pool.query(
    `insert into request_nonce select gen_random_uuid(), n::text, $2 from generate_series(1, $1) n`,
    [amount, new Date(expire_time)],
  )

const addCredential = async () => {
  const organization_id = systemIds.uuid()
  const credential_id = systemIds.uuid()
  const create_time = new Date(start)
  const domain = `d-${organization_id}`
  await insertOrganization(db, { organization_id, name: 'n', domain, create_time })
  await pool.query(
    `insert into credential (credential_id, organization_id, role, name, api_key_hash, api_key_sealed,
       api_secret_sealed, create_time)
     values ($1, $2, 'ROLE_MEMBER', '', $3, '', '', $4)`,
    [credential_id, organization_id, systemIds.bytes(32), create_time],
  )
  return credential_id
}

const lastUsed = async (credential_id: string): Promise<number | undefined> => {
  const { rows } = await pool.query(
    'select last_used_time t from credential where credential_id = $1',
    [credential_id],
  )
  return rows[0].t?.getTime()
}

describe('the janitor', () => {
  it('deletes nonces that have expired, more than fit into a batch, and no other', async () => {
    await addNonces(6_000, start - 1)
    await addNonces(10, start + 60_000)
    await (await open()).swept(1)
    expect(await count('request_nonce')).toBe(10)
    await pool.query('delete from request_nonce')
  })

  it('notes the use of credentials every ten seconds', async () => {
    const [one, two] = [await addCredential(), await addCredential()]
    const { clock, swept } = await open([[one], [two]])
    await swept(1)
    expect([await lastUsed(one), await lastUsed(two)]).toEqual([start, undefined])
    clock.step(9_999)
    expect(await lastUsed(two)).toBeUndefined()
    clock.step(1)
    await swept(2)
    expect(await lastUsed(two)).toBe(start + 10_000)
    expect(await lastUsed(one)).toBe(start)
  })

  it('notes at its end what was used since', async () => {
    const credential_id = await addCredential()
    const { janitor, clock, swept } = await open([[], [credential_id]])
    await swept(1)
    clock.set(start + 5_000)
    await janitor.stop()
    expect(await lastUsed(credential_id)).toBe(start + 5_000)
  })

  it('removes usage that can no longer be requested', async () => {
    const add = (period: string, days: number) =>
      pool.query('insert into rate_usage values ($1, $2, $3, $4, 1)', [
        systemIds.uuid(),
        'c',
        period,
        new Date(start - days * 86_400_000),
      ])
    await add('hour', 3)
    await add('hour', 1)
    await add('day', 90)
    await add('day', 30)
    await (await open()).swept(1)
    expect(await count('rate_usage')).toBe(2)
  })

  it('makes the partitions of the coming months before they are needed', async () => {
    const { clock, swept } = await open()
    const exists = (name: string) => count('pg_class', `relname = '${name}'`)
    await swept(1)
    expect([await exists('transfer_2026_08'), await exists('transfer_2026_09')]).toEqual([1, 0])
    clock.set(Date.UTC(2026, 5, 1))
    await swept(2)
    expect(await exists('transfer_2026_09')).toBe(1)
  })

  it('continues after a failure, which it logs', async () => {
    const { log, lines } = await captureLog()
    await pool.query('alter table request_nonce rename to hidden')
    const { clock, swept } = await open([], log)
    await swept(1)
    expect(lines().map(({ msg }) => msg)).toEqual(['sweep failed, will retry'])
    await pool.query('alter table hidden rename to request_nonce')
    await addNonces(5, start - 1)
    clock.step(10_000)
    await swept(2)
    expect(await count('request_nonce')).toBe(0)
  })
})
