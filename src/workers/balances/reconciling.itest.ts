import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { storeReadings } from '../../storage/balances/balances.ts'
import { applyDeltas, insertBalanceChanges } from '../../storage/balances/changes.ts'
import { assetIdOf } from '../../storage/wallets/assets.ts'
import { startTracker } from '../tracker/tracker.ts'

const { db, pool } = await freshDatabase()

it('finds balances that differ from the chain, reports and corrects them', async () => {
  const { chain, network_id, account, address, createCaller } = await createWalletBench(db, 's')
  const caller = await createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation: 4 })
  for (const number of [1, 2, 3])
    await caller.call('RegisterAddress', {
      wallet_id,
      address: address(number),
      import_asset: true,
    })
  const alarms: object[] = []
  const tracker = startTracker({
    db,
    clock: systemClock,
    log: { ...silentLog, error: (fields) => void alarms.push(fields) },
    holder: randomUUID(),
    name: { chain: chain.service, network: 'mainnet' },
    network_id,
    chain,
    reconcile: { firstMs: 10, everyMs: 10 },
  })
  onTestFinished(tracker.stop)
  const rounds = async (count: number) => {
    const goal = tracker.status().reconciliation!.checked + 3 * count
    await waitFor('compared', () => tracker.status().reconciliation!.checked >= goal)
  }
  const balances = async () => {
    const { assets } = await caller.call('ListAssets', { wallet_id, asset_type: 'ASSET_TYPE_S' })
    return assets.map(({ balance }: { balance: string }) => balance)
  }
  await waitFor('the beginning', () => tracker.status().block_number === 0)
  // What is imported shows when the block that it was read at is confirmed.
  expect(await balances()).toEqual([])
  for (let block = 0; block < 3; block++) chain.mine()
  await waitFor('three balances', async () => (await balances()).length === 3)
  // A change that waits for its confirmation is not a difference.
  chain.mine([{ movements: [{ from: account(1), to: account(2), value: 500n }] }])
  await waitFor('the block', () => tracker.status().block_number === 4)
  await rounds(3)
  expect(await balances()).toEqual(['1000000', '1000000', '1000000'])
  expect(tracker.status().reconciliation?.repaired).toBe(0)

  await pool.query('update balance set balance = balance + 7 where address = $1', [account(2)])
  await waitFor('repaired', () => tracker.status().reconciliation?.repaired === 1)
  expect(await balances()).toEqual(['1000000', '1000000', '1000000'])
  expect(alarms).toMatchObject([
    { address: address(2), expected: '1000507', found: '1000500', block_number: 4 },
  ])
  chain.mine()
  chain.mine()
  chain.mine()
  await waitFor('confirmed', async () => (await balances()).includes('1000500'))
  await rounds(2)
  expect(await balances()).toEqual(['999500', '1000500', '1000000'])
  expect(tracker.status().reconciliation?.repaired).toBe(1)
})

it.each([3, 34])(
  'leaves a change in a gap to the reading that waits for %i confirmations',
  async (confirmation) => {
    const network = `gap-${confirmation}`
    const bench = await createWalletBench(db, 's', { network })
    const { chain, network_id, account, address } = bench
    const caller = await bench.createCaller()
    const { wallet_id } = await caller.call('RegisterWallet', {
      ...{ name: 'w', confirmation, address: address(1), import_asset: true },
    })
    const tracker = startTracker({
      ...{ db, clock: systemClock, log: silentLog, holder: randomUUID() },
      ...{ name: { chain: chain.service, network }, network_id, chain },
      reconcile: { firstMs: 10, everyMs: 10 },
      patience: { unreadableMs: 0, silentMs: 0 },
    })
    onTestFinished(tracker.stop)
    const request = { wallet_id, asset_type: 'ASSET_TYPE_S' }
    const balance = async () => (await caller.call('ListAssets', request)).assets[0]?.balance
    await waitFor('the beginning', () => tracker.status().block_number === 0)
    for (let block = 1; block < confirmation; block++) chain.mine()
    await waitFor('the first balance', async () => (await balance()) === '1000000')
    chain.spoil(confirmation, 'unreadable')
    chain.mine([{ movements: [{ from: account(2), to: account(1), value: 5n }] }])
    chain.mine()
    await waitFor('the gap', () => tracker.status().block_number === confirmation + 1)
    // Nothing is compared until it was read again.
    const { checked } = tracker.status().reconciliation!
    await delay(200)
    expect(tracker.status().reconciliation!.checked).toBe(checked)
    expect(await balance()).toBe('1000000')
    for (let block = 1; block < confirmation; block++) chain.mine()
    await waitFor('the change is confirmed', async () => (await balance()) === '1000005')
    expect(tracker.status().reconciliation?.repaired).toBe(0)
  },
)

it('reads again what was read before tracking began', async () => {
  const bench = await createWalletBench(db, 's', { network: 'begins-later' })
  const { chain, network_id, account, address } = bench
  const caller = await bench.createCaller()
  await caller.call('RegisterWallet', {
    name: 'w',
    confirmation: 1,
    address: address(1),
    import_asset: true,
  })
  chain.mine([{ movements: [{ from: account(2), to: account(1), value: 5n }] }])
  const tracker = startTracker({
    db,
    clock: systemClock,
    log: silentLog,
    holder: randomUUID(),
    name: { chain: chain.service, network: 'begins-later' },
    network_id,
    chain,
  })
  onTestFinished(tracker.stop)
  await waitFor('the balance', async () => {
    const request = { address: address(1), asset_type: 'ASSET_TYPE_S' }
    return (await caller.call('ListAssets', request)).assets[0]?.balance === '1000005'
  })
})

it('adds no change twice when a baseline that holds it is stored at the same time', async () => {
  const bench = await createWalletBench(db, 's', { network: 'at-once' })
  const { network_id, account, address, family } = bench
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', {
    name: 'w',
    confirmation: 1,
    address: address(1),
    import_asset: true,
  })
  const { organization_id } = caller
  const asset_id = assetIdOf(network_id, family.native)
  const pair = { wallet_id, organization_id, address: account(1), asset_id }
  await insertBalanceChanges(db, [
    { ...pair, network_id, block_number: 3, due_block: 3, delta: 50n },
  ])
  const now = new Date()
  const adding = Promise.withResolvers<ReturnType<typeof applyDeltas>>()
  await db.transaction().execute(async (trx) => {
    const reading = { ...pair, ...family.native, balance: 1_000_050n, as_of_block: 3 }
    await storeReadings(trx, [reading], { network_id, now })
    adding.resolve(applyDeltas(db, { network_id, head: 3, limit: 10, now }))
    await waitFor('it waits', async () => {
      const { rows } = await pool.query(
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
      )
      return rows.length > 0
    })
  })
  await await adding.promise
  const { assets } = await caller.call('ListAssets', { wallet_id, asset_type: 'ASSET_TYPE_S' })
  expect(assets[0].balance).toBe('1000050')
})
