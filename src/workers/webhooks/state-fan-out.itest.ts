import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'
import { withTransaction } from '../../domain/transactions/scope.ts'
import { systemClock } from '../../lib/clock.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import { acquireLease } from '../../storage/tracking/leases.ts'
import { updateTransaction } from '../../storage/transactions/transactions.ts'
import { createMonths } from '../janitor/months.ts'
import { releasePage } from '../tracker/releasing.ts'
import { findAncestor, rollBack } from '../tracker/reorg.ts'
import { storeBeginning, storeBlocks } from '../tracker/store.ts'
import type { TrackerTools } from '../tracker/tools.ts'

const { db, pool } = await freshDatabase()
const never = new AbortController().signal
let networks = 0

/** A chain whose blocks are stored one by one, one organization with managed transactions and another one. */
const begin = async (limits: Partial<TrackerTools> = {}) => {
  const network = `states-${networks++}`
  const bench = await createWalletBench(db, 'c', { network, salt: network })
  const { chain, network_id, account, address } = bench
  const lease = await acquireLease(db, { name: network, holder: randomUUIDv7(), ttl_ms: 3_600_000 })
  const tools: TrackerTools = {
    ...{ db, clock: systemClock, network_id, chain, window: 64 },
    lease: { name: network, epoch: lease!.epoch },
    ...limits,
  }
  const [large, small] = [await bench.createCaller(), await bench.createCaller()]
  const registerWallet = async (caller: Caller, who: number): Promise<string> =>
    (await caller.call('RegisterWallet', { name: 'w', confirmation: 2, address: address(who) }))
      .wallet_id
  const wallet_id = await registerWallet(large, 1)
  await registerWallet(small, 2)
  await storeBeginning(tools, chain.canonical().at(-1)!)
  const register = async (caller: Caller, fields: object = {}): Promise<string> =>
    (
      await caller.call('RegisterWebhook', {
        webhook_endpoint: 'https://receiver.invalid',
        confirmation: 1,
        ...fields,
      })
    ).webhook_id
  const store = async () => {
    const cursor = (await findCursor(db, network_id))!
    const position = { number: cursor.block_number, hash: cursor.block_hash }
    const event = (await chain.follow(position, never)[Symbol.asyncIterator]().next()).value
    await createMonths(db)(event.blocks.map(({ time }: { time: number }) => time))
    return await storeBlocks(tools, event.blocks)
  }
  const hashOf = (nonce: number) => Buffer.alloc(32, `${network}/${nonce}`)
  /** Transactions that were sent, each with its nonce. */
  const send = async (nonces: readonly number[]) => {
    for (const nonce of nonces)
      await db
        .insertInto('managed_transaction')
        .values({
          ...{ organization_id: large.organization_id, network_id, wallet_id, nonce },
          transaction_id: `tx-${nonce}`,
          transaction_state: 'TRANSACTION_STATE_SENT',
          ...{ from: account(9), to: account(8), value: 1n, gas: 21_000n, gas_price: 1n },
          data: Buffer.alloc(0),
          eip155_chain_id: 1n,
          request_hash: randomBytes(32),
          transaction_hash: hashOf(nonce),
          ...{ create_time: new Date(), update_time: new Date() },
          ...{ broadcast_count: 1, is_unsure: false },
        })
        .execute()
  }
  const mined = (nonces: readonly number[]) =>
    nonces.map((nonce) => ({ payer: account(9), nonce, hash: hashOf(nonce) }))
  const pay = (to: number, value: bigint) => ({ movements: [{ to: account(to), value }] })
  /** The states that a webhook was notified of, by transaction; its sequence must have no gap. */
  const notified = async (webhook_id: string): Promise<Record<string, string[]>> => {
    const { rows } = await pool.query(
      `select sequence::int4, data from delivery
       where webhook_id = $1 and sequence is not null order by sequence`,
      [webhook_id],
    )
    expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, at) => at + 1))
    const states: Record<string, string[]> = {}
    for (const { data } of rows) {
      if (!data.transaction) continue
      const { transaction_id, transaction_state } = data.transaction
      states[transaction_id] ??= []
      states[transaction_id].push(transaction_state.replace('TRANSACTION_STATE_', ''))
    }
    return states
  }
  const count = async (table: 'delivery' | 'state_event', { organization_id }: Caller) =>
    (
      await pool.query(`select count(*)::int4 as count from ${table} where organization_id = $1`, [
        organization_id,
      ])
    ).rows[0].count as number
  const drain = async () => {
    while ((await releasePage(tools)).isMore);
  }
  return {
    ...{ bench, chain, tools, large, small, wallet_id, network_id, register, store, send, mined },
    ...{ pay, notified, count, drain },
  }
}

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)

it('200 mined transactions with 500 webhooks do not delay the transfers of another organization', async () => {
  const setup = await begin()
  const { chain, tools, large, small, network_id, register, store, send, mined, pay, count } = setup
  await pool.query(
    `insert into webhook (webhook_id, organization_id, network_id, webhook_endpoint, confirmation,
       webhook_state, secret_sealed, next_sequence, create_time, update_time)
     select gen_random_uuid(), $1, $2, 'https://example.org', 1, 'WEBHOOK_STATE_ENABLED', $3, 1,
       now(), now() from generate_series(1, 500)`,
    [large.organization_id, network_id, randomBytes(8)],
  )
  const webhook_id = await register(small)
  const values = async () =>
    (
      await pool.query(
        `select data->'transfers'->0->>'value' as value from delivery
         where webhook_id = $1 and sequence is not null order by sequence`,
        [webhook_id],
      )
    ).rows.map(({ value }) => value)
  await send(numbers(200))
  chain.mine([...mined(numbers(200)), pay(2, 8n)])
  const { notifications } = await store()
  expect(notifications).toEqual({ count: 1, isMore: true })
  expect(await values()).toEqual(['8'])
  expect([await count('delivery', large), await count('state_event', large)]).toEqual([0, 200])
  // While they are being expanded, a page and a block are as short as without them.
  for (let page = 1; page <= 4; page++) {
    const before = await count('delivery', large)
    await releasePage(tools)
    const written = (await count('delivery', large)) - before
    expect(written).toBeGreaterThan(0)
    expect(written).toBeLessThanOrEqual(500)
  }
  const [deliveries, events] = [await count('delivery', large), await count('state_event', large)]
  chain.mine([pay(2, 9n)])
  await store()
  expect(await values()).toEqual(['8', '8', '9'])
  // The block has confirmed its part of them, which adds one row each.
  expect(await count('delivery', large)).toBe(deliveries)
  expect(await count('state_event', large)).toBe(events + 64)
}, 120_000)

it('states are notified in their order without gaps, whatever is written at once', async () => {
  const setup = await begin({
    fanOutLimits: { inline: 0, perEvent: 0 },
    releaseLimits: { notifications: 2, transfers: 100 },
  })
  const { chain, tools, large, wallet_id, register, store, send, mined, notified, drain } = setup
  const all = [await register(large), await register(large), await register(large, { wallet_id })]
  const changed = await register(large)
  const silent = await register(large, { events: ['WEBHOOK_EVENT_TRANSFER'] })
  await send([0, 1, 2])
  chain.mine(mined([0, 1]))
  await store()
  const late = await register(large)
  const update = async (webhook_id: string, kind: string) =>
    await large.call('UpdateWebhook', { webhook_id, events: [`WEBHOOK_EVENT_${kind}`] })
  await update(changed, 'TRANSFER')
  await update(silent, 'TRANSACTION_STATE')
  await releasePage(tools)
  // As if it had few webhooks from now on: what follows waits behind what is left.
  tools.fanOutLimits = { inline: 100, perEvent: 4 }
  // The second leaves the chain and returns in another block.
  chain.reorganize(1, [mined([0]), mined([1, 2])])
  await rollBack(tools, (await findAncestor(tools, never))!)
  const head = chain.canonical().length - 1
  while ((await findCursor(db, setup.network_id))!.block_number < head) await store()
  await drain()
  chain.mine()
  await store()
  await drain()
  const again = ['MINED', 'SENT', 'MINED', 'CONFIRMED']
  const expected = { 'tx-0': again, 'tx-1': again, 'tx-2': ['MINED', 'CONFIRMED'] }
  for (const webhook_id of all) expect(await notified(webhook_id)).toEqual(expected)
  expect(await notified(changed)).toEqual({ 'tx-0': ['MINED'], 'tx-1': ['MINED'] })
  for (const webhook_id of [late, silent]) {
    const states = await notified(webhook_id)
    expect(states['tx-0']).toEqual(again.slice(1))
    expect(states['tx-2']).toEqual(expected['tx-2'])
  }
  expect(await setup.count('state_event', large)).toBe(0)
})

it('an operation or the sender stores one row for a state change that 300 webhooks are notified of', async () => {
  const { large, network_id, register, send, notified, count, drain } = await begin()
  const [first] = [await register(large)]
  await pool.query(
    `insert into webhook select (jsonb_populate_record(w,
       jsonb_build_object('webhook_id', gen_random_uuid()))).* from webhook w, generate_series(2, 300)
     where webhook_id = $1`,
    [first],
  )
  await send([0])
  const scope = { organization_id: large.organization_id, network_id }
  for (const state of ['SENDING', 'SENT'] as const)
    await withTransaction({ db, clock: systemClock }, scope, 'tx-0', (trx, row) =>
      updateTransaction(trx, row, { transaction_state: `TRANSACTION_STATE_${state}` }),
    )
  expect([await count('state_event', large), await count('delivery', large)]).toEqual([2, 0])
  await drain()
  expect([await count('state_event', large), await count('delivery', large)]).toEqual([0, 600])
  expect(await notified(first)).toEqual({ 'tx-0': ['SENDING', 'SENT'] })
})

it('a notification of a state omits `data` above 4 KiB, with a marker', async () => {
  const { large, network_id, register, send } = await begin()
  const webhook_id = await register(large)
  await send([0, 1])
  const lengths = [4_096, 131_072]
  const scope = { organization_id: large.organization_id, network_id }
  for (const [at, length] of lengths.entries()) {
    await pool.query('update managed_transaction set data = $2 where transaction_id = $1', [
      ...[`tx-${at}`, Buffer.alloc(length, 7)],
    ])
    await withTransaction({ db, clock: systemClock }, scope, `tx-${at}`, (trx, row) =>
      updateTransaction(trx, row, { transaction_state: 'TRANSACTION_STATE_SENDING' }),
    )
  }
  const { rows } = await pool.query(
    `select data->'transaction' as transaction from delivery where webhook_id = $1 order by sequence`,
    [webhook_id],
  )
  const [short, long] = rows.map(({ transaction }) => transaction)
  expect(short.data).toBe(`0x${'07'.repeat(4_096)}`)
  expect(short).not.toHaveProperty('data_omitted')
  expect(long).toMatchObject({ data: '0x', data_omitted: true })
})
