import { describe, expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches, listAll } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { ChainBlock } from '../../chains/chain.ts'
import type { WalletService } from '../../contract/variant.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { startImporter } from '../jobs/importer.ts'

const database = await freshDatabase()
const { db, pool } = database
const { startBench, settled, addWebhook, notified } = createTrackedBenches(database)

describe.each<WalletService>(['t', 's', 'p', 'c'])('the tracker of %s', (service) => {
  it('lists the transfers of tracked addresses and their balances', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address, family } = bench
    const asset_type = family.native.asset_type
    const { wallet_id } = await caller.call('RegisterWallet', {
      name: 'w',
      address: address(1),
      ...((service === 's' || service === 'c') && { confirmation: 2 }),
    })
    await caller.call('RegisterAddress', { wallet_id, address: address(2) })
    const tracker = start()
    await settled(bench)
    chain.mine([
      {
        payer: account(9),
        fee: 3n,
        movements: [{ from: account(9), to: account(1), value: 100n }],
      },
      { payer: account(1), fee: 5n, movements: [{ from: account(1), to: account(2), value: 40n }] },
      { movements: [{ from: account(8), to: account(9), value: 1n }] },
    ])
    chain.mine([{ unknown_kind: 'teleport' }])
    chain.mine()
    await settled(bench)
    const records = await listAll(caller, { wallet_id })
    // In T each end has a record of its own.
    expect(records.map(({ value }) => value)).toEqual(
      service === 't' ? ['40', '40', '100'] : ['40', '100'],
    )
    expect(await listAll(caller, { wallet_id, address: address(2) })).toHaveLength(1)
    expect(await listAll(caller, { address: address(1) })).toHaveLength(2)
    const id = service === 's' ? 'transaction_digest' : 'transaction_hash'
    const byHash = await listAll(caller, { [id]: records.at(-1)[id] })
    expect(byHash).toEqual([records.at(-1)])
    const balances = await caller.call('ListAssets', { wallet_id, asset_type })
    expect(
      balances.assets.map((asset: { address: string; balance: string }) => [
        asset.address,
        asset.balance,
      ]),
    ).toEqual(
      expect.arrayContaining([
        [address(1), '1000055'],
        [address(2), '1000040'],
      ]),
    )
    const sum = await caller.call('ListAssets', { wallet_id, asset_type, is_aggregated: true })
    expect(sum.assets).toMatchObject([{ address: '', balance: '2000095', wallet_id }])
    expect(tracker.status()).toMatchObject({ state: 'leading', unknown_kinds: { teleport: 1 } })
    const seconds = Math.floor(chain.canonical()[1]!.time / 1000)
    const none = await caller.call('ListTransfers', { wallet_id, start_time: seconds + 1 })
    expect(none.transfers).toEqual([])
    const some = await caller.call('ListTransfers', {
      wallet_id,
      start_time: seconds,
      end_time: seconds,
    })
    expect(some.transfers).toHaveLength(records.length)
    const reversed = { wallet_id, start_time: 2, end_time: 1 }
    expect(await caller.reason('ListTransfers', reversed)).toBe('INVALID_REQUEST')
    await caller.call('RemoveAddress', { wallet_id, address: address(1) })
    expect(await listAll(caller, { wallet_id })).toEqual(records)
    expect(await caller.reason('ListTransfers', { address: address(1) })).toBe('ADDRESS_NOT_FOUND')
  })

  it('reads balances that were never touched when asked to', async () => {
    const { bench, caller, start } = await startBench(service)
    const asset_type = bench.family.native.asset_type
    start()
    await settled(bench)
    bench.chain.mine()
    const importing = service !== 'c'
    const { wallet_id } = await caller.call('RegisterWallet', {
      name: 'w',
      address: bench.address(1),
      ...(importing && { import_asset: true }),
      // What is read at the present block of S shows when that is confirmed.
      ...(service === 's' && { confirmation: 1 }),
    })
    const first = await caller.call('ListAssets', { wallet_id, asset_type })
    expect(first.assets).toHaveLength(importing ? 1 : 0)
    const many = Array.from({ length: 250 }, (_, i) => bench.address(100 + i))
    await caller.call('BatchRegisterAddresses', { wallet_id, addresses: many })
    await caller.call('RefreshAssetBalances', { wallet_id, asset_type })
    const count = async () =>
      Number(
        (await pool.query('select count(*) from balance where wallet_id = $1', [wallet_id])).rows[0]
          .count,
      )
    expect(await count()).toBeGreaterThanOrEqual(100)
    expect(await count()).toBeLessThan(251)
    const importer = startImporter({
      db,
      clock: systemClock,
      log: silentLog,
      network_id: bench.network_id,
      chain: bench.chain,
      pollMs: 50,
    })
    onTestFinished(importer.stop)
    await waitFor('the rest is read', async () => (await count()) === 251)
    await waitFor('the job is gone', async () => {
      const { rows } = await pool.query('select 1 from job where network_id = $1', [
        bench.network_id,
      ])
      return rows.length === 0
    })
  })

  it('notifies webhooks once per transaction, when it is confirmed', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    const [now, later] = [await addWebhook(bench, caller, 0), await addWebhook(bench, caller, 3)]
    start()
    await settled(bench)
    chain.mine([
      {
        movements: [
          { from: account(9), to: account(1), value: 7n },
          { from: account(9), to: account(1), value: 8n },
        ],
      },
    ])
    await settled(bench)
    const [first] = await notified(now)
    expect(await notified(later)).toEqual([])
    expect(first).toMatchObject({ sequence: 1, data: { confirmations: 1, sequence: 1 } })
    expect(first.data.transfers).toMatchObject([
      { wallet_id, value: '7' },
      { wallet_id, value: '8' },
    ])
    chain.mine()
    chain.mine()
    await settled(bench)
    expect(await notified(now)).toHaveLength(1)
    expect(await notified(later)).toMatchObject([{ sequence: 1, data: { confirmations: 3 } }])
  })

  it('continues from its cursor, also in another process', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    const first = start()
    await settled(bench)
    chain.mine([{ movements: [{ from: account(9), to: account(1), value: 1n }] }])
    await settled(bench)
    const begun = performance.now()
    await first.stop()
    expect(performance.now() - begun).toBeLessThan(10_000)
    for (let value = 2n; value < 130n; value++)
      chain.mine([{ movements: [{ from: account(9), to: account(1), value }] }])
    start()
    await settled(bench)
    expect(await listAll(caller, { wallet_id, page_size: 100 })).toHaveLength(129)
  })

  it('records blocks that no node has as a gap and reads the balances again', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    const asset_type = bench.family.native.asset_type
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    await caller.call('RefreshAssetBalances', { wallet_id, asset_type })
    const first = start()
    await settled(bench)
    await first.stop()
    for (let i = 0; i < 20; i++)
      chain.mine([{ movements: [{ from: account(9), to: account(1), value: 1n }] }])
    chain.prune(15)
    const tracker = start()
    await settled(bench)
    expect(await tracker.gaps()).toMatchObject([{ from_block: 1, to_block: 14 }])
    // The first block after the gap has the ten confirmations of S and C, the default.
    for (let i = 0; i < 4; i++) chain.mine()
    await settled(bench)
    // S is read at the present block only, which needs them too.
    if (service === 's') for (let i = 0; i < 9; i++) chain.mine()
    await settled(bench)
    const { assets } = await caller.call('ListAssets', { wallet_id, asset_type })
    const confirmed = service === 'c' ? 15 : 20
    expect(assets).toMatchObject([{ balance: String(1_000_000 + confirmed) }])
  })
  it('records incomplete blocks as a gap and reads the balances after them', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    const asset_type = bench.family.native.asset_type
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    await caller.call('RefreshAssetBalances', { wallet_id, asset_type })
    const { follow } = chain
    // What these blocks pay is hidden from the tracker, as it is inside of untraced calls.
    chain.follow = async function* (...args) {
      for await (const event of follow(...args))
        yield event.kind === 'blocks'
          ? {
              ...event,
              blocks: event.blocks.map((block) => (isHidden(block) ? hide(block) : block)),
            }
          : event
    }
    const isHidden = ({ number }: ChainBlock) => number >= 2 && number <= 4
    const hide = (block: ChainBlock): ChainBlock => ({
      ...block,
      lacks: 'no node traces',
      decode: () => ({ movements: [], touched: [] }),
    })
    const first = start()
    await settled(bench)
    const pay = () => chain.mine([{ movements: [{ from: account(9), to: account(1), value: 1n }] }])
    for (let number = 1; number <= 3; number++) {
      pay()
      await settled(bench)
    }
    await first.stop()
    pay()
    const tracker = start()
    await settled(bench)
    expect(await tracker.gaps()).toMatchObject([
      { from_block: 2, to_block: 4, reason: 'no node traces' },
    ])
    for (let i = 0; i < 12; i++) chain.mine()
    await settled(bench)
    if (service === 's') for (let i = 0; i < 9; i++) chain.mine()
    await settled(bench)
    const { assets } = await caller.call('ListAssets', { wallet_id, asset_type })
    expect(assets).toMatchObject([{ balance: String(1_000_000 + 4) }])
    if (!chain.reorganizes) return
    chain.reorganize(
      14,
      Array.from({ length: 15 }, () => []),
    )
    await settled(bench)
    expect(await tracker.gaps()).toMatchObject([{ from_block: 2, to_block: 4 }])
  })
})
