// What a block costs must not grow with the transactions that wait for their confirmation: an organization may have 100,000
// of them on a network that others use too.

import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { rowsRead } from '../../../test/helpers/rows-read.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'
import type { ChainBlock } from '../../chains/chain.ts'
import { silentLog } from '../../lib/log.ts'
import { openDatabase } from '../../storage/pg/database.ts'
import { setCursor } from '../../storage/tracking/blocks.ts'
import { confirmedPart, confirmLeft, followBlocks, unfollowAbove } from './follow.ts'

const { connection } = await freshDatabase()
const { db, stop } = openDatabase({ connection, log: silentLog, max: 1 })
afterAll(stop)
const bench = await createWalletBench(db, 'c')
const { network_id } = bench
const now = new Date()

let head = 1_000
let owner: Caller & { wallet_id: string; from: Buffer }
let numbers: number[] = []

const hashOf = (nonce: number) => Buffer.alloc(32, String(nonce).padStart(4, '0'))

/** Stores a block with all transactions, with others of the same nonces, or with none. */
const store = async (number: number, sent: 'ours' | 'others' | 'none' = 'none') => {
  head = number
  const used = numbers.map((nonce) => ({
    ...{ from: owner.from, nonce, failed: false },
    hash: () => (sent === 'ours' ? hashOf(nonce) : randomBytes(32)),
  }))
  const block = { number, hash: randomBytes(32), sent: sent === 'none' ? [] : used }
  await db.transaction().execute(async (trx) => {
    await followBlocks(trx, { network_id, now }, [block as unknown as ChainBlock])
    const cursor = { network_id, block_number: number, block_hash: block.hash }
    await setCursor(trx, { ...cursor, update_time: now })
  })
}

/** Confirms a page of what blocks have left; says whether there is more. */
const confirmMore = async (perOrganization = 200): Promise<boolean> => {
  const context = { network_id, now, part: confirmedPart(undefined, perOrganization) }
  const page = await db.transaction().execute((trx) => confirmLeft(trx, context, head))
  return page.isMore
}

const states = async ({ organization_id }: Caller = owner): Promise<Record<string, number>> => {
  const { rows } = await sql<{ state: string; count: number }>`
    select replace(transaction_state, 'TRANSACTION_STATE_', '') as state, count(*)::int8 as count
    from managed_transaction where organization_id = ${organization_id} group by 1`.execute(db)
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
}

const update = (confirmation: number) =>
  owner.call('UpdateConfirmation', { wallet_id: owner.wallet_id, confirmation })

let accounts = 0
const begin = async (count: number) => {
  head += 100
  numbers = Array.from({ length: count }, (_, at) => at)
  const caller = await bench.createCaller()
  const address = bench.address(++accounts)
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation: 50 })
  await caller.call('RegisterAddress', { wallet_id, address })
  const from = Buffer.from(address.slice(2), 'hex')
  owner = { ...caller, wallet_id, from }
  await sql`
    insert into managed_transaction (organization_id, transaction_id, network_id, wallet_id, transaction_state,
      "from", "to", value, gas, gas_price, data, nonce, eip155_chain_id, request_hash, transaction_hash,
      broadcast_count, is_unsure, create_time, update_time)
    select ${caller.organization_id}, 't' || nonce, ${network_id}, ${wallet_id}, 'TRANSACTION_STATE_SENT',
      ${from}, ${from}, 0, 21000, 1, '', nonce, 1, '', hash, 1, false,
      ${now}::timestamptz + nonce % 7 * interval '1 second', ${now}
    from unnest(${numbers}::int8[], ${numbers.map(hashOf)}::bytea[]) as t (nonce, hash)`.execute(db)
  await sql`analyze managed_transaction`.execute(db)
}

it('a block does not read the transactions that wait for a later one', async () => {
  const count = 600
  await begin(count)
  await store(head, 'ours')
  expect(await states()).toEqual({ MINED: count })
  await sql`analyze managed_transaction`.execute(db)
  const blocks = async () => {
    for (let left = 10; left > 0; left--) await store(head + 1)
  }
  expect(await rowsRead(db, 'managed_transaction', blocks)).toBeLessThan(10 * 20)
  expect(await states()).toEqual({ MINED: count })
})

it.each([
  ['ours', 'MINED', 'CONFIRMED'],
  ['others', 'SENT', 'REPLACED'],
] as const)('the block of the confirmation ends what %s decided', async (sent, before, after) => {
  const count = 20
  await begin(count)
  await store(head, sent)
  await store(head + 48)
  expect(await states()).toEqual({ [before]: count })
  await store(head + 1)
  expect(await states()).toEqual({ [after]: count })
})

it('a higher confirmation postpones, and a lower one brings forward', async () => {
  // More than a page of UpdateConfirmation.
  const count = 1_100
  await begin(count)
  await store(head, 'ours')
  await update(60)
  await store(head + 58)
  expect(await states()).toEqual({ MINED: count })
  await update(100)
  await store(head + 1)
  expect(await states()).toEqual({ MINED: count })
  await update(30)
  await store(head + 1)
  while (await confirmMore());
  expect(await states()).toEqual({ CONFIRMED: count })
})

it('a block confirms a part of what an organization has due, all of others, and pages between blocks the rest', async () => {
  await begin(300)
  const [large, ours] = [owner, numbers]
  await store(head, 'ours')
  await update(1_000)
  await begin(20)
  await store(head, 'ours')
  const small = owner
  await store(head + 48)
  await large.call('UpdateConfirmation', { wallet_id: large.wallet_id, confirmation: 1 })
  await store(head + 1)
  expect(await states(large)).toEqual({ CONFIRMED: 64, MINED: ours.length - 64 })
  expect(await states(small)).toEqual({ CONFIRMED: 20 })
  const left: number[] = []
  for (let isMore = true; isMore; ) {
    isMore = await confirmMore(100)
    left.push((await states(large)).MINED ?? 0)
  }
  expect(left).toEqual([136, 36, 0])
  expect(await confirmMore()).toBe(false)
})

it('each transaction is confirmed and notified once, whatever page it is in', async () => {
  await begin(150)
  const { call, wallet_id, organization_id } = owner
  const webhook = { wallet_id, webhook_endpoint: 'https://example.org/hook', confirmation: 1 }
  await call('RegisterWebhook', { ...webhook, events: ['WEBHOOK_EVENT_TRANSACTION_STATE'] })
  await store(head, 'ours')
  await update(1)
  await store(head + 1)
  expect(await states()).toEqual({ CONFIRMED: 64, MINED: 86 })
  // A reorganization in between takes both kinds back.
  const removed = { network_id, above: head - 2, organization_ids: [organization_id] }
  await db.transaction().execute((trx) => unfollowAbove(trx, { network_id, now }, removed))
  expect(await states()).toEqual({ SENT: 150 })
  await store(head, 'ours')
  while (await confirmMore(40));
  expect(await states()).toEqual({ CONFIRMED: 150 })
  const { rows } = await sql<{ id: string; states: string }>`
    select data->'transaction'->>'transaction_id' as id,
      string_agg(replace(data->'transaction'->>'transaction_state', 'TRANSACTION_STATE_', ''), ' '
        order by sequence) as states
    from delivery where organization_id = ${organization_id} group by 1`.execute(db)
  expect(
    Object.fromEntries(
      Map.groupBy(rows, (row) => row.states)
        .entries()
        .map(([said, all]) => [said, all.length]),
    ),
  ).toEqual({
    'MINED CONFIRMED SENT MINED CONFIRMED': 64,
    'MINED SENT MINED CONFIRMED': 86,
  })
})

it('a page of transactions with much data has few of them', async () => {
  await begin(40)
  await sql`update managed_transaction set data = decode(repeat('00', 131072), 'hex')
    where organization_id = ${owner.organization_id}`.execute(db)
  await store(head, 'ours')
  await store(head + 49)
  expect(await states()).toEqual({ CONFIRMED: 16, MINED: 24 })
  while (await confirmMore());
  expect(await states()).toEqual({ CONFIRMED: 40 })
})

it('a page reads its own rows, whatever else is due', async () => {
  await begin(1_000)
  await store(head, 'ours')
  await sql`analyze managed_transaction`.execute(db)
  await update(1)
  // Versions of rows that are gone would count.
  await sql`vacuum (index_cleanup on) managed_transaction`.execute(db)
  const page = () => store(head + 1)
  expect(await rowsRead(db, 'managed_transaction', page)).toBeLessThan(5 * 64)
})

it('many transactions take a few statements', async () => {
  await begin(60)
  await store(head, 'ours')
  head += 49
  let updates = 0
  const counting = db.withPlugin({
    transformQuery: ({ node }) => {
      if (node.kind === 'UpdateQueryNode') updates++
      return node
    },
    transformResult: async ({ result }) => result,
  })
  const context = { network_id, now, part: confirmedPart(undefined) }
  await counting.transaction().execute((trx) => confirmLeft(trx, context, head))
  expect(updates).toBe(1)
  expect(await states()).toEqual({ CONFIRMED: 60 })
})

it('a block that leaves the chain takes its confirmation with it', async () => {
  const count = 20
  await begin(count)
  const first = head
  await store(head, 'ours')
  await store(head + 20)
  const removed = { network_id, above: first - 1, organization_ids: [owner.organization_id] }
  await db.transaction().execute((trx) => unfollowAbove(trx, { network_id, now }, removed))
  await store(first + 60)
  expect(await states()).toEqual({ SENT: count })
  await store(head + 1, 'ours')
  await store(head + 48)
  expect(await states()).toEqual({ MINED: count })
  await store(head + 1)
  expect(await states()).toEqual({ CONFIRMED: count })
})

it('what an earlier version mined or moved is confirmed by its own block', async () => {
  const count = 20
  await begin(count)
  await store(head, 'ours')
  // It notes no block, and after a reorganization leaves the one that was noted.
  await sql`update managed_transaction set due_block = null where nonce % 2 = 0`.execute(db)
  await sql`update managed_transaction set block_number = block_number + 5 where nonce % 2 = 1`.execute(
    db,
  )
  await store(head + 49)
  expect(await states()).toEqual({ CONFIRMED: count / 2, MINED: count / 2 })
  await store(head + 5)
  expect(await states()).toEqual({ CONFIRMED: count })
})
