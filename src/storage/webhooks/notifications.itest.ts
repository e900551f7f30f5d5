import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { isOnCitus } from '../../../test/helpers/citus.ts'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import type { TransactionState } from '../../contract/records/states.ts'
import type { ManagedTransactionRow } from '../transactions/record.ts'
import { deleteWithoutTransfers } from './notifications.ts'
import { countPendingTransfers, listTransactionShares } from './notified-transfers.ts'
import { notifyOfStates } from './state-notifications.ts'

const { db } = await freshDatabase()
const bench = await createWalletBench(db, 'c')
const now = new Date('2026-01-02T03:04:05.678Z')

const addWebhook = async (organization_id: string, wallet_id: string | null, enabled = true) => {
  const webhook_id = randomUUIDv7()
  await db
    .insertInto('webhook')
    .values({
      webhook_id,
      organization_id,
      network_id: bench.network_id,
      wallet_id,
      webhook_endpoint: 'https://receiver.invalid',
      confirmation: 1,
      webhook_state: enabled ? 'WEBHOOK_STATE_ENABLED' : 'WEBHOOK_STATE_DISABLED',
      secret_sealed: randomBytes(8),
      next_sequence: 1,
      create_time: now,
      update_time: now,
    })
    .execute()
  return webhook_id
}

const rowsOf = (webhook_id: string) =>
  db
    .selectFrom('delivery')
    .innerJoin('delivery_queue', 'delivery_queue.webhook_history_id', 'delivery.webhook_history_id')
    .selectAll()
    .where('delivery.webhook_id', '=', webhook_id)
    .orderBy('delivery.sequence')
    .execute()

it('a state change is sent to the webhooks of its wallet and to those of all wallets', async () => {
  const { organization_id, call } = await bench.createCaller()
  const other = await bench.createCaller()
  const { wallet_id } = await call('RegisterWallet', { name: 'mine' })
  const { wallet_id: second } = await call('RegisterWallet', { name: 'second' })
  const mine = await addWebhook(organization_id, wallet_id)
  const all = await addWebhook(organization_id, null, false)
  const silent = [
    await addWebhook(organization_id, second),
    await addWebhook(other.organization_id, null),
  ]
  const transaction = (transaction_state: TransactionState): ManagedTransactionRow => ({
    organization_id,
    transaction_id: 'tx-1',
    network_id: bench.network_id,
    wallet_id,
    transaction_state,
    from: bench.account(1),
    to: bench.account(2),
    value: 10n ** 30n,
    gas: 21_000n,
    gas_price: 7n,
    data: Buffer.alloc(0),
    nonce: 3,
    eip155_chain_id: 1n,
    request_hash: randomBytes(32),
    signature: null,
    raw_transaction: null,
    transaction_hash: Buffer.alloc(32, 1),
    last_error: null,
    replaced_by: null,
    sent_time: null,
    broadcast_time: null,
    block_number: null,
    block_hash: null,
    receipt_status: null,
    create_time: now,
    update_time: now,
    broadcast_count: 1,
    is_unsure: true,
    next_broadcast_time: null,
    replaced_block_number: null,
    warnings: null,
    due_block: null,
  })
  const sent = [transaction('TRANSACTION_STATE_SENT'), transaction('TRANSACTION_STATE_MINED')]
  expect(await notifyOfStates(db, sent, now)).toEqual({ count: 4, isLeft: false })
  // The same states again, as a reorganization brings them about.
  expect(await notifyOfStates(db, sent, now)).toEqual({ count: 4, isLeft: false })

  const rows = await rowsOf(mine)
  expect(rows.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4])
  expect(rows[0]).toMatchObject({
    organization_id,
    notification_type: 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED',
    webhook_status: 'WEBHOOK_STATUS_PENDING',
    next_attempt_time: now,
    due_block: null,
    data: {
      sequence: 1,
      transaction: {
        wallet_id,
        transaction_id: 'tx-1',
        transaction_hash: `0x${'01'.repeat(32)}`,
        transaction_state: 'TRANSACTION_STATE_SENT',
        value: '1000000000000000000000000000000',
        data: '0x',
        nonce: '3',
      },
    },
  })
  const held = await rowsOf(all)
  expect(held).toHaveLength(4)
  expect(held[0]).toMatchObject({
    webhook_status: 'WEBHOOK_STATUS_ON_HOLD',
    next_attempt_time: null,
  })
  for (const webhook_id of silent) expect(await rowsOf(webhook_id)).toEqual([])
  expect(await notifyOfStates(db, [], now)).toEqual({ count: 0, isLeft: false })
})

it.skipIf(isOnCitus)(
  'a young notification without transfers waits where machines have them, because one may not show them yet',
  async () => {
    const { organization_id } = await bench.createCaller()
    const webhook_id = await addWebhook(organization_id, null)
    const add = async (ageMs: number) => {
      const webhook_history_id = randomUUIDv7()
      await sql`
      insert into delivery (webhook_history_id, organization_id, network_id, webhook_id, notification_type, data,
        block_number, due_block, create_time)
      values (${webhook_history_id}, ${organization_id}, ${bench.network_id}, ${webhook_id},
        'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', 10, 10, ${new Date(now.getTime() - ageMs)})`.execute(
        db,
      )
      return webhook_history_id
    }
    const left = async () => {
      const rows = await db
        .selectFrom('delivery')
        .select(['webhook_history_id', 'due_block'])
        .where('webhook_id', '=', webhook_id)
        .execute()
      return rows.map((row) => [row.webhook_history_id, row.due_block])
    }
    const drop = (ids: string[]) =>
      db.transaction().execute((trx) => deleteWithoutTransfers(trx, ids, { head: 12, now }))
    await drop([await add(1_000)])
    expect(await left()).toEqual([])
    // The table of Citus that names distributed ones.
    await sql`create table pg_dist_partition ()`.execute(db)
    const [young, old] = [await add(1_000), await add(3_600_000)]
    await drop([young, old])
    expect(await left()).toEqual([[young, 13]])
  },
)

it('the transfers of a huge transaction are found by places beyond 32 bits, as S has them', async () => {
  const { organization_id } = await bench.createCaller()
  const { network_id } = bench
  const backfilled = [2 ** 32 + 1]
  const transaction = { organization_id, transaction_hash: randomBytes(32), transfer_block: 1 }
  const shares = { isWhole: true, wallet_ids: [], ordinals: backfilled }
  const counted = { ...transaction, wallet_id: null, backfilled }
  await db.transaction().execute(async (trx) => {
    const bounds = { rows: 10, bytes: 1_000 }
    expect(await listTransactionShares(trx, network_id, transaction, shares, bounds)).toEqual([])
    expect(await countPendingTransfers(trx, network_id, counted, 1)).toMatchObject({ count: 0 })
  })
})
