// What a new transaction costs the database must not grow with those that are open: within its limits one organization could
// otherwise take the database from all others. Counted in rows that are read, because times depend on the machine.

import { sql } from 'kysely'
import { afterAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { rowsRead as countRows } from '../../../test/helpers/rows-read.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'
import { maxOpenTransactions } from '../../contract/limits.ts'
import { silentLog } from '../../lib/log.ts'
import { listQuotaUses, setQuota } from '../../storage/access/quotas.ts'
import { openDatabase } from '../../storage/pg/database.ts'

const { connection } = await freshDatabase()
// One connection, for rowsRead.
const { db, stop } = openDatabase({ connection, log: silentLog, max: 1 })
afterAll(stop)
const bench = await createWalletBench(db, 'c')
const { sending } = bench.chain

type User = Caller & { wallet_id: string }
let accounts = 0

const register = async (addresses: number): Promise<User & { at: string[] }> => {
  const caller = await bench.createCaller()
  const at = Array.from({ length: addresses }, () => bench.address(++accounts))
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
  await caller.call('BatchRegisterAddresses', { wallet_id, addresses: at })
  return { ...caller, wallet_id, at }
}

const create = async ({ call, wallet_id }: User, from: string | undefined, fields: object = {}) =>
  (await call('CreateTransaction', { wallet_id, from, to: from, value: '0', ...fields }))
    .transaction

/** Makes copies of the only transaction of each address, with the nonces that follow. */
const fill = async ({ organization_id }: Caller, count: number) => {
  await sql`
    insert into managed_transaction
    select (jsonb_populate_record(t, jsonb_build_object('transaction_id', t.transaction_id || '-' || number,
      'nonce', t.nonce + number))).*
    from managed_transaction t, generate_series(1, ${count}::int4) number
    where organization_id = ${organization_id}`.execute(db)
  // As if a version that knows nothing of the bounds had created them some time ago.
  await sql`update open_transaction_use set count_time = now() - interval '11 minutes'`.execute(db)
  await sql`update sender_nonce set scan_time = now() - interval '1 minute'`.execute(db)
  await sql`analyze managed_transaction`.execute(db)
}

/** Makes the last counts recent for the rest of the test, however slow the machine is. */
const keepRecent = async () => {
  await sql`update open_transaction_use set count_time = now() + interval '1 minute'`.execute(db)
  await sql`update sender_nonce set count_time = now() + interval '1 minute'`.execute(db)
}

const rowsRead = (work: () => Promise<unknown>) => countRows(db, 'managed_transaction', work)

const times = async (count: number, work: () => Promise<unknown>) => {
  for (let left = count; left > 0; left--) await work()
}

describe('an organization with many open transactions', () => {
  it('reads few of them for a new one', async () => {
    const user = await register(11)
    const [quiet, ...busy] = user.at
    for (const from of busy) await create(user, from)
    await fill(user, 499)
    // The first one counts.
    await create(user, quiet)
    expect(await rowsRead(() => times(20, () => create(user, quiet)))).toBeLessThan(20 * 60)
  })

  it('counts them once where its quota is used up, and not for every refusal', async () => {
    const user = await register(5)
    for (const from of user.at) await create(user, from)
    await fill(user, 999)
    const scope = { organization_id: user.organization_id, quota_name: 'QUOTA_OPEN_TRANSACTIONS' }
    await setQuota(db, scope as never, { quota_limit: 5_000, update_time: new Date() })
    const other = await register(1)
    const { wallet_id } = await user.call('RegisterWallet', { name: 'v', address: other.at[0] })
    const one = { ...user, wallet_id }
    const refuse = () =>
      expect(create(one, other.at[0])).rejects.toMatchObject({ reason: 'QUOTA_EXCEEDED' })
    expect(await rowsRead(refuse)).toBeGreaterThan(5_000 - 1)
    await keepRecent()
    const calls = countCalls()
    expect(await rowsRead(() => times(20, refuse))).toBeLessThan(100)
    expect(calls()).toBe(0)
    const show = () => listQuotaUses(db, user.organization_id)
    expect((await show()).get('QUOTA_OPEN_TRANSACTIONS')?.used).toBe(5_000)
    expect(await rowsRead(() => times(20, show))).toBeLessThan(20 * 1_100)
    // Another limit applies at once.
    await setQuota(db, scope as never, { quota_limit: 5_001, update_time: new Date() })
    await create(one, other.at[0])
    await expect(create(one, other.at[0])).rejects.toMatchObject({ reason: 'QUOTA_EXCEEDED' })
  })
})

/** How often the nodes are asked for a balance, which every new transaction needs. */
function countCalls(): () => number {
  const { balance } = sending
  let calls = 0
  sending.balance = async (...args) => {
    calls++
    return await balance(...args)
  }
  return () => {
    sending.balance = balance
    return calls
  }
}

describe('an address with many open transactions', () => {
  it('reads them once for many new ones, with and without a nonce', async () => {
    const user = await register(1)
    const [from] = user.at
    const first = await create(user, from)
    await fill(user, 899)
    const nonces: number[] = []
    const work = async () => {
      nonces.push(Number((await create(user, from)).nonce))
      const nonce = Number(first.nonce) + 950 + nonces.length
      await create(user, from, { nonce })
    }
    expect(await rowsRead(() => times(20, work))).toBeLessThan(8_000)
    expect(nonces).toEqual(Array.from({ length: 20 }, (_, at) => Number(first.nonce) + 900 + at))
  })

  it('refuses more without asking nodes and without reading them', async () => {
    const user = await register(1)
    const [from] = user.at
    await create(user, from)
    await fill(user, maxOpenTransactions - 2)
    const last = await create(user, from)
    const refuse = () =>
      expect(create(user, from)).rejects.toMatchObject({ reason: 'TOO_MANY_OPEN_TRANSACTIONS' })
    await refuse()
    await keepRecent()
    const calls = countCalls()
    expect(await rowsRead(() => times(20, refuse))).toBeLessThan(100)
    expect(calls()).toBe(0)
    await user.call('CancelTransaction', { transaction_id: last.transaction_id })
    expect((await create(user, from)).nonce).toBe(last.nonce)
  })

  it('reads none of those that were canceled', async () => {
    const user = await register(1)
    const [from] = user.at
    const { transaction_id } = await create(user, from)
    await fill(user, 3_000)
    await sql`
      update managed_transaction set nonce = 0, transaction_state = 'TRANSACTION_STATE_CANCELED'
      where organization_id = ${user.organization_id} and transaction_id <> ${transaction_id}`.execute(
      db,
    )
    await sql`vacuum analyze managed_transaction`.execute(db)
    expect(await rowsRead(() => times(10, () => create(user, from)))).toBeLessThan(10 * 60)
  })
})
