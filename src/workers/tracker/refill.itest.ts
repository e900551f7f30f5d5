import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches, listAll } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { WalletService } from '../../contract/variant.ts'
import { systemClock } from '../../lib/clock.ts'
import { isReopening } from '../../storage/balances/reopening.ts'
import { listOpenGaps } from '../../storage/tracking/gaps.ts'
import { findTraced } from '../../storage/tracking/networks.ts'
import { listEvents } from '../../storage/tracking/operational-events.ts'
import { runBackfill } from './backfill.ts'

const database = await freshDatabase()
const { db } = database
const {
  startBench,
  settled,
  addWebhook,
  notified: notificationsOf,
} = createTrackedBenches(database)

const soon = {
  refill: { everyMs: 20, firstPauseMs: 20, lastPauseMs: 50 },
  patience: { unreadableMs: 0, silentMs: 0 },
}

/** A tracked wallet with a webhook, and payments to it. */
const startSetup = async (service: WalletService, confirmation = 1) => {
  const setup = await startBench(service)
  const { bench, caller } = setup
  const { account, address, chain, network_id } = bench
  const { wallet_id } = await caller.call('RegisterWallet', {
    name: 'w',
    address: address(1),
    ...((service === 's' || service === 'c') && { confirmation }),
  })
  const webhook_id = await addWebhook(bench, caller, 1)
  const pay = (value: bigint) => ({ movements: [{ from: account(9), to: account(1), value }] })
  const dueNow = async () => {
    await database.pool.query('update tracker_gap set next_time = null where network_id = $1', [
      network_id,
    ])
  }
  const values = async () =>
    (await listAll(caller, { wallet_id, page_size: 100 })).map(({ value }) => Number(value))
  const notified = async () =>
    (await notificationsOf(webhook_id)).map(({ data }) => ({
      values: data.transfers.map(({ value }: { value: string }) => Number(value)),
      backfilled: data.backfilled === true,
    }))
  const gaps = async () =>
    (await listOpenGaps(db, network_id)).map(({ from_block, to_block }) => [from_block, to_block])
  const events = async () => {
    const { rows } = await database.pool.query(
      'select network from network where network_id = $1',
      [network_id],
    )
    return (await listEvents(db, 100)).open.filter(({ network }) => network === rows[0].network)
  }
  return { ...setup, chain, network_id, pay, dueNow, values, notified, gaps, events, wallet_id }
}

describe.each<WalletService>(['t', 's', 'p', 'c'])('a gap of %s', (service) => {
  it('of blocks that no node had is filled once some node has them, and notified as backfilled', async () => {
    const { chain, pay, bench, start, ...setup } = await startSetup(service)
    const tracker = start(soon)
    await settled(bench)
    chain.setMode('down')
    for (let value = 1n; value <= 40n; value++) chain.mine([pay(value)])
    chain.prune(40)
    chain.mine([pay(1_000n)])
    chain.setMode('up')
    await settled(bench)
    expect(await setup.values()).toEqual([1_000, 40])
    expect(await setup.gaps()).toEqual([[1, 39]])
    expect(await setup.events()).toMatchObject([
      { kind: 'gap', detail: '1 gaps with 39 blocks between 1 and 39: pruned' },
    ])
    chain.prune(0)
    await setup.dueNow()
    await waitFor('the gap is filled', async () => (await setup.gaps()).length === 0)
    chain.mine()
    await settled(bench)
    expect(await setup.values()).toEqual([1_000, ...Array.from({ length: 40 }, (_, i) => 40 - i)])
    const notified = await setup.notified()
    expect(notified.slice(0, 2)).toEqual([
      { values: [40], backfilled: false },
      { values: [1_000], backfilled: false },
    ])
    expect(notified.slice(2)).toEqual(
      Array.from({ length: 39 }, (_, i) => ({ values: [i + 1], backfilled: true })),
    )
    expect(await setup.events()).toEqual([])
    expect(tracker.status()).toMatchObject({ refill: { filled: 39 } })
  })

  it('of a block that cannot be read does not stop those after it, and the head is the true one', async () => {
    const { chain, pay, bench, start, ...setup } = await startSetup(service)
    const tracker = start({ ...soon, patience: { unreadableMs: 3_600_000 } })
    await settled(bench)
    chain.spoil(3, 'unreadable')
    for (let value = 1n; value <= 5n; value++) chain.mine([pay(value)])
    await waitFor('it fails', () => tracker.status().state === 'failing')
    expect(tracker.status()).toMatchObject({ block_number: 2, head: 5 })
    expect(tracker.status().last_error).toBe('block 3 cannot be read')
    await tracker.stop()
    start(soon)
    await settled(bench)
    expect(await setup.values()).toEqual([5, 4, 2, 1])
    expect(await setup.gaps()).toEqual([[3, 3]])
    chain.spoil(3, 'whole')
    await setup.dueNow()
    await waitFor('the gap is filled', async () => (await setup.gaps()).length === 0)
    chain.mine()
    await settled(bench)
    expect(await setup.values()).toEqual([5, 4, 3, 2, 1])
    expect((await setup.notified()).at(-1)).toEqual({ values: [3], backfilled: true })
  })

  it('of a transaction that cannot be decoded concerns only that one', async () => {
    const { chain, pay, bench, start, ...setup } = await startSetup(service)
    const tracker = start(soon)
    await settled(bench)
    let isUndecodable = true
    const hash = Buffer.alloc(32, 7)
    chain.mine([pay(1n), { ...pay(2n), hash, isUndecodable: () => isUndecodable }, pay(3n)])
    chain.mine([pay(4n)])
    await settled(bench)
    expect(await setup.values()).toEqual([4, 3, 1])
    expect(await listOpenGaps(db, setup.network_id)).toMatchObject([
      {
        from_block: 1,
        to_block: 1,
        reason: `cannot decode 1 transactions: ${hash.toString('hex')} (broken)`,
      },
    ])
    expect(tracker.status()).toMatchObject({
      state: 'leading',
      unknown_kinds: { undecoded_transaction: 1 },
    })
    // An attempt that brings nothing is put off, as for blocks that no node has.
    await setup.dueNow()
    await waitFor('it is tried again', () => tracker.status().refill.failed > 0)
    expect(await setup.gaps()).toEqual([[1, 1]])
    isUndecodable = false
    await setup.dueNow()
    await waitFor('the gap is filled', async () => (await setup.gaps()).length === 0)
    chain.mine()
    await settled(bench)
    expect(await setup.values()).toEqual([4, 3, 2, 1])
    expect((await setup.notified()).at(-1)).toEqual({ values: [2], backfilled: true })
  })

  it('is not made by unreachable nodes, however long', async () => {
    const { chain, pay, bench, start, ...setup } = await startSetup(service)
    const tracker = start(soon)
    await settled(bench)
    chain.setMode('down')
    chain.mine([pay(1n)])
    await waitFor('it fails', () => tracker.status().state === 'failing')
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    chain.setMode('up')
    await settled(bench)
    expect(await setup.values()).toEqual([1])
    expect(await setup.gaps()).toEqual([])
  })
})

it('an untraced block notifies only of its internal transfers once it is traced', async () => {
  const { chain, bench, start, ...setup } = await startSetup('c')
  const { account } = bench
  start(soon)
  await settled(bench)
  // From this block on, traces are expected.
  chain.mine([{ movements: [{ from: account(9), to: account(8), value: 1n }] }])
  await settled(bench)
  chain.spoil(2, 'untraced')
  chain.mine([
    {
      movements: [
        { from: account(9), to: account(1), value: 5n },
        { from: account(8), to: account(1), value: 7n, isInner: true },
      ],
    },
  ])
  chain.mine()
  await settled(bench)
  expect(await setup.values()).toEqual([5])
  expect(await setup.gaps()).toEqual([[2, 2]])
  await setup.dueNow()
  chain.mine()
  await settled(bench)
  expect(await setup.gaps()).toEqual([[2, 2]])
  // Nodes that do not trace do not close it, and neither does a backfill.
  const { network_id } = bench
  const range = { db, clock: systemClock, network_id, chain, from: 1 }
  const { signal } = new AbortController()
  expect(await runBackfill({ ...range, signal })).toMatchObject({ closed: 0, transfers: 0 })
  chain.spoil(2, 'whole')
  await setup.dueNow()
  await waitFor('the gap is filled', async () => (await setup.gaps()).length === 0)
  chain.mine()
  await settled(bench)
  expect(await setup.values()).toEqual([7, 5])
  expect(await setup.notified()).toEqual([
    { values: [5], backfilled: false },
    { values: [7], backfilled: true },
  ])
})

it('balances are read again because of a gap that is filled before its turn', async () => {
  const { chain, bench, caller, start, ...setup } = await startSetup('c')
  const { account, network_id } = bench
  const balance = async () => {
    const request = { wallet_id: setup.wallet_id, asset_type: 'ASSET_TYPE_C' }
    return (await caller.call('ListAssets', request)).assets[0]?.balance
  }
  start(soon)
  await settled(bench)
  // From this block on, traces are expected.
  chain.mine([{ movements: [{ from: account(9), to: account(8), value: 1n }] }])
  await settled(bench)
  const mineUntraced = async (value: bigint) => {
    const number = chain.canonical().length
    chain.spoil(number, 'untraced')
    const inner = { from: account(8), to: account(1), value, isInner: true }
    chain.mine([{ movements: [inner] }])
    chain.mine()
    await settled(bench)
    chain.spoil(number, 'whole')
    await setup.dueNow()
    await waitFor('the gap is filled', async () => (await setup.gaps()).length === 0)
  }
  const isRead = async () => !(await isReopening(db, network_id))
  await mineUntraced(5n)
  await waitFor('the first one', async () => (await balance()) === '1000005')
  await waitFor('the others', isRead)
  await mineUntraced(7n)
  expect(await setup.values()).toEqual([7, 5])
  expect(await isRead()).toBe(true)
  // Not for every gap at once, but in the end.
  await database.pool.query(
    `update network set reopen_time = reopen_time - interval '1 hour' where network_id = $1`,
    [network_id],
  )
  await waitFor('the second one', async () => (await balance()) === '1000012')
})

it('a balance that a block in a gap changed does not wait for wallets with more confirmations', async () => {
  const { chain, bench, caller, pay, start, ...setup } = await startSetup('c')
  const request = { wallet_id: setup.wallet_id, asset_type: 'ASSET_TYPE_C' }
  const balance = async () => (await caller.call('ListAssets', request)).assets[0]?.balance
  const other = await bench.createCaller()
  await other.call('RegisterWallet', { name: 'w', confirmation: 30 })
  start(soon)
  await settled(bench)
  chain.mine([pay(1n)])
  await settled(bench)
  chain.spoil(2, 'untraced')
  const inner = { from: bench.account(8), to: bench.account(1), value: 7n, isInner: true }
  chain.mine([{ movements: [inner] }])
  await settled(bench)
  expect(await balance()).toBe('1000001')
  chain.spoil(2, 'whole')
  await setup.dueNow()
  await waitFor('the balance', async () => (await balance()) === '1000008')
})

it.each(['c', 's'] as const)(
  'a balance of %s that is first seen in a gap counts each later change when that is confirmed',
  async (service) => {
    const { chain, bench, caller, pay, start, ...setup } = await startSetup(service, 3)
    const request = {
      wallet_id: setup.wallet_id,
      asset_type: service === 'c' ? 'ASSET_TYPE_C' : 'ASSET_TYPE_S',
    }
    const balance = async () => (await caller.call('ListAssets', request)).assets[0]?.balance
    start(soon)
    await settled(bench)
    chain.spoil(1, 'unreadable')
    chain.mine([pay(10n)])
    chain.mine([pay(1n)])
    // The cursor is at a block that changes the balance itself when the gap is filled.
    chain.mine([pay(2n)])
    await settled(bench)
    expect(await setup.gaps()).toEqual([[1, 1]])
    chain.spoil(1, 'whole')
    await setup.dueNow()
    await waitFor('the gap is filled', async () => (await setup.gaps()).length === 0)
    const seen: unknown[] = []
    for (let left = 3; left > 0; left--) {
      chain.mine()
      await settled(bench)
      seen.push(await balance())
    }
    const after = (...values: bigint[]) => String(values.reduce((a, b) => a + b, 1_000_000n))
    expect(seen).toEqual([after(10n, 1n), after(10n, 1n, 2n), after(10n, 1n, 2n)])
  },
)

it('a first balance of s shows changes in a gap when they are confirmed, not before', async () => {
  const { chain, bench, caller, pay, start, ...setup } = await startSetup('s', 4)
  const request = { wallet_id: setup.wallet_id, asset_type: 'ASSET_TYPE_S' }
  const balance = async () => (await caller.call('ListAssets', request)).assets[0]?.balance
  start(soon)
  await settled(bench)
  chain.spoil(2, 'unreadable')
  chain.mine([pay(1n)])
  chain.mine([pay(10n)])
  chain.mine()
  const seen: unknown[] = []
  for (let head = 4; head <= 6; head++) {
    chain.mine()
    await settled(bench)
    seen.push(await balance())
  }
  // The change of block 1 is confirmed at 4. The node answers for the present, from which the unknown change of block 2 cannot
  // be subtracted.
  expect(seen).toEqual([undefined, undefined, '1000011'])
})

it('a balance that is first seen in a gap is read although the block at which it was filled left the chain', async () => {
  const { chain, bench, caller, pay, start, ...setup } = await startSetup('c', 4)
  const request = { wallet_id: setup.wallet_id, asset_type: 'ASSET_TYPE_C' }
  const balance = async () => (await caller.call('ListAssets', request)).assets[0]?.balance
  const tracker = start(soon)
  await settled(bench)
  chain.spoil(1, 'unreadable')
  chain.mine([pay(10n)])
  chain.mine()
  chain.mine()
  await settled(bench)
  chain.spoil(1, 'whole')
  await setup.dueNow()
  await waitFor('the gap is filled', async () => (await setup.gaps()).length === 0)
  chain.reorganize(1, [[], []])
  await settled(bench)
  expect(await balance()).toBe('1000010')
  await tracker.stop()
})

it('that a network was traced is remembered', async () => {
  const { chain, pay, bench, start } = await startSetup('c')
  start(soon)
  await settled(bench)
  expect(await findTraced(db, bench.network_id)).toBe(false)
  chain.mine([pay(1n)])
  await settled(bench)
  expect(await findTraced(db, bench.network_id)).toBe(true)
})
