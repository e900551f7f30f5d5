import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import {
  createTrackedBenches,
  listAll,
  type TrackedBench,
} from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { AssetKey } from '../../contract/records/assets.ts'
import { systemClock } from '../../lib/clock.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import { listOpenGaps } from '../../storage/tracking/gaps.ts'
import { findAncestor } from './reorg.ts'

const database = await freshDatabase()
const { db } = database
const { startBench, settled, addWebhook, notified } = createTrackedBenches(database)

describe('a reorganization in c', () => {
  let setup: TrackedBench
  beforeAll(async () => {
    setup = await startBench('c')
  })

  it('drops transfers, reads balances again and retracts notifications', async () => {
    const { bench, caller, start } = setup
    const { chain, account, address } = bench
    const token = account(77)
    chain.addToken(token, 'CONTRACT_TYPE_ERC20', { name: 'Gold', symbol: 'AU', decimals: 2 })
    const asset: AssetKey = {
      asset_type: 'ASSET_TYPE_ERC20',
      contract_address: token,
      token_id: 0n,
    }
    const contract = { contract_address: address(77), contract_type: 'CONTRACT_TYPE_ERC20' }
    await caller.call('RegisterContract', contract)
    expect((await caller.call('ListContracts')).contracts).toMatchObject([
      { ...contract, contract_metadata: { erc20: { symbol: 'AU', decimals: 2 } } },
    ])
    const { wallet_id } = await caller.call('RegisterWallet', {
      name: 'w',
      address: address(1),
      confirmation: 1,
    })
    const [now, later] = [await addWebhook(bench, caller, 1), await addWebhook(bench, caller, 4)]
    const tracker = start()
    await settled(bench)
    const pay = (value: bigint) => ({ movements: [{ to: account(1), value, asset }] })
    chain.mine([pay(5n)])
    chain.mine([pay(6n)])
    await settled(bench)
    const list = async () => (await listAll(caller, { wallet_id })).map(({ value }) => value)
    const balance = async () =>
      (await caller.call('ListAssets', { wallet_id, asset_type: 'ASSET_TYPE_ERC20' })).assets[0]
        .balance
    expect(await list()).toEqual(['6', '5'])
    expect(await balance()).toBe('11')
    chain.reorganize(2, [[], [], [pay(9n)]])
    await settled(bench)
    expect(await list()).toEqual(['9'])
    expect(await balance()).toBe('9')
    expect(tracker.status().reorganizations).toBe(1)
    const states = (await notified(now)).map(({ data }) => [
      data.transfers[0].value,
      data.transfers[0].transfer_state,
    ])
    expect(states).toEqual([
      ['5', 'TRANSFER_STATE_SUCCESS'],
      ['6', 'TRANSFER_STATE_SUCCESS'],
      ['5', 'TRANSFER_STATE_REORGED'],
      ['6', 'TRANSFER_STATE_REORGED'],
      ['9', 'TRANSFER_STATE_SUCCESS'],
    ])
    expect((await notified(now)).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
    for (let i = 0; i < 3; i++) chain.mine()
    await settled(bench)
    expect((await notified(later)).map(({ data }) => data.transfers[0].value)).toEqual(['9'])
  })

  it('a return to an earlier branch ends with a notification of its transfers', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account, address } = bench
    await caller.call('RegisterWallet', { name: 'w', address: address(1), confirmation: 1 })
    const webhooks = [await addWebhook(bench, caller, 1), await addWebhook(bench, caller, 3)]
    start()
    await settled(bench)
    const pay = (value: bigint) => [{ movements: [{ from: account(9), to: account(1), value }] }]
    chain.mine(pay(1n))
    chain.mine()
    const a = chain.mine()
    await settled(bench)
    const b = chain.reorganize(3, [[], pay(2n), [], []])
    await settled(bench)
    chain.resume(a)
    const longer = chain.mine(pay(3n))
    await settled(bench)
    chain.resume(b)
    chain.mine()
    await settled(bench)
    chain.resume(longer)
    chain.mine()
    chain.mine()
    await settled(bench)
    for (const webhook_id of webhooks) {
      const rows = await notified(webhook_id)
      const last = new Map(
        rows.map(({ data }) => [data.transfers[0].value, data.transfers[0].transfer_state]),
      )
      expect(last).toEqual(
        new Map([
          ['1', 'TRANSFER_STATE_SUCCESS'],
          ['2', 'TRANSFER_STATE_REORGED'],
          ['3', 'TRANSFER_STATE_SUCCESS'],
        ]),
      )
      const first = rows.filter(({ data }) => data.transfers[0].value === '1')
      expect(first.map(({ data }) => data.transfers[0].transfer_state.slice(15))).toEqual([
        'SUCCESS',
        'REORGED',
        'SUCCESS',
        'REORGED',
        'SUCCESS',
      ])
    }
    // Each is a notification of its own, for receivers that drop duplicates by its id.
    const { rows } = await database.pool.query(
      'select count(distinct webhook_history_id)::int4 as ids, max(sequence)::int4 as last from delivery where webhook_id = $1',
      [webhooks[0]],
    )
    expect(rows[0].ids).toBe(rows[0].last)
  })

  it('that leaves less than was stored waits for the new branch', async () => {
    const { bench, caller, start } = setup
    const { chain, account } = bench
    start()
    await settled(bench)
    chain.mine([{ movements: [{ from: account(9), to: account(1), value: 3n }] }])
    await settled(bench)
    const before = (await findCursor(db, bench.network_id))!.block_number
    chain.reorganize(1, [])
    const { network_id } = bench
    const tools = {
      db,
      clock: systemClock,
      network_id,
      chain,
      lease: { name: '', epoch: 0 },
      window: 64,
    }
    expect(await findAncestor(tools, new AbortController().signal)).toBeUndefined()
    expect((await findCursor(db, bench.network_id))!.block_number).toBe(before)
    chain.mine()
    chain.mine()
    await settled(bench)
    const request = { address: bench.address(1), page_size: 100 }
    const values = (await listAll(caller, request)).map(({ value }) => value)
    expect(values).not.toContain('3')
  })
})

it('a block after a reorganization that no node traces is a gap, as before', async () => {
  const { bench, start } = await startBench('c')
  const { chain, account, network_id } = bench
  start({ refill: { everyMs: 3_600_000 } })
  await settled(bench)
  const inner = { from: account(8), to: account(1), value: 7n, isInner: true }
  chain.mine([{ movements: [inner] }])
  await settled(bench)
  chain.spoil(1, 'untraced')
  chain.reorganize(1, [[{ movements: [inner] }], []])
  await settled(bench)
  expect(await listOpenGaps(db, network_id)).toMatchObject([{ from_block: 1, to_block: 1 }])
})

it('a chain that does not reorganize stops at a foreign history, with nothing lost', async () => {
  const { bench, caller, start } = await startBench('p')
  const { chain, account, address } = bench
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
  const tracker = start()
  await settled(bench)
  chain.mine([{ movements: [{ from: account(9), to: account(1), value: 1n }] }])
  await settled(bench)
  chain.reorganize(1, [[], []])
  await waitFor('the tracker fails', () => tracker.status().state === 'failing')
  expect(tracker.status().last_error).toContain('no longer')
  expect(await listAll(caller, { wallet_id })).toHaveLength(1)
})

it('takes back what was notified of a block and what was found in it later, each once', async () => {
  const { bench, caller, start } = await startBench('c')
  const { chain, network_id, account, address } = bench
  await caller.call('RegisterWallet', { name: 'w', address: address(1), confirmation: 3 })
  const webhook_id = await addWebhook(bench, caller, 1)
  start()
  await settled(bench)
  const values = [1n, 2n, 3n]
  chain.mine([{ movements: values.map((value) => ({ to: account(1), value })) }])
  await settled(bench)
  // As if the third one had been found when the block was read again.
  await database.pool.query(
    `insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
       notification_type, data, transaction_hash, block_number, due_block, create_time)
     select gen_random_uuid(), organization_id, network_id, webhook_id, notification_type,
       jsonb_build_object('block_number', block_number, 'backfilled', '[3]'::jsonb),
       transaction_hash, block_number, block_number, create_time
     from delivery where webhook_id = $1 and sequence = 1`,
    [webhook_id],
  )
  for (let left = 0; left < 3; left++) {
    chain.mine()
    await settled(bench)
  }
  chain.reorganize(4, [[], [], [], [], []])
  await settled(bench)
  const says = (await notified(webhook_id)).map(({ data }) => [
    data.backfilled === true,
    data.transfers.map((one: { value: string }) => Number(one.value)),
    data.transfers[0].transfer_state.slice(15),
  ])
  // Two notifications of one block are released and taken back together, in any order.
  const pairs = [0, 2, 4].map((at) =>
    says.slice(at, at + 2).toSorted(([a], [b]) => Number(a) - Number(b)),
  )
  expect([says.length, ...pairs.flat()]).toEqual([
    6,
    [false, [1, 2, 3], 'PENDING'],
    [true, [3], 'PENDING'],
    [false, [1, 2, 3], 'SUCCESS'],
    [true, [3], 'SUCCESS'],
    [false, [1, 2, 3], 'REORGED'],
    [true, [3], 'REORGED'],
  ])
  expect(await findCursor(db, network_id)).toBeDefined()
})

it('goes back as far as the blocks of the last hour, however many they are', async () => {
  const { bench, caller, start } = await startBench('c')
  const { chain, network_id, account, address } = bench
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
  const tracker = start({ window: 8 })
  await settled(bench)
  const pay = (value: bigint) => [{ movements: [{ to: account(1), value }] }]
  // A block is 12 s: 300 of them are an hour.
  for (let number = 1; number <= 400; number++) chain.mine(number === 150 ? pay(7n) : [])
  await settled(bench)
  const { rows } = await database.pool.query(
    'select min(block_number)::int4 as lowest from block where network_id = $1',
    [network_id],
  )
  expect(rows[0].lowest).toBeLessThanOrEqual(100)
  expect(rows[0].lowest).toBeGreaterThan(50)
  chain.reorganize(280, [pay(9n), ...Array.from({ length: 280 }, () => [])])
  await settled(bench)
  expect((await listAll(caller, { wallet_id })).map(({ value }) => value)).toEqual(['9'])
  expect(tracker.status().reorganizations).toBe(1)
})
