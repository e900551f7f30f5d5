import { randomBytes, randomUUID, randomUUIDv7 } from 'node:crypto'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../test/helpers/database.ts'
import { waitFor } from '../../test/helpers/wait-for.ts'
import { type Caller, createWalletBench, type WalletBench } from '../../test/helpers/wallets.ts'
import type { AssetKey, WalletService } from '../chains/chain.ts'
import { systemClock } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { findCursor } from '../storage/blocks.ts'
import { acquireLease, LeaseLostError } from '../storage/leases.ts'
import { startImporter } from './importer.ts'
import { startTracker } from './tracker.ts'
import { storeBeginning } from './tracker-store.ts'

const { db, pool } = await freshDatabase()
let networks = 0

const startBench = async (service: WalletService) => {
  const bench = await createWalletBench(db, service, { network: `net-${networks++}` })
  const caller = await bench.createCaller()
  const start = () => {
    const tracker = startTracker({
      db,
      clock: systemClock,
      log: silentLog,
      holder: randomUUID(),
      network: `net-${bench.chain_id}`,
      chain_id: bench.chain_id,
      chain: bench.chain,
      ttlMs: 1_000,
    })
    onTestFinished(tracker.stop)
    return tracker
  }
  return { bench, caller, start }
}

const settled = async ({ chain, chain_id }: WalletBench) => {
  const head = chain.canonical().at(-1)!
  await waitFor('the tracker is at the head', async () => {
    const cursor = await findCursor(db, chain_id)
    return cursor?.block_hash.equals(head.hash) === true
  })
  await waitFor('no balance is due', async () => {
    const { rows } = await pool.query(
      'select 1 from balance_change where chain_id = $1 and due_block <= $2 and apply_time is null',
      [chain_id, head.number],
    )
    return rows.length === 0
  })
}

const addWebhook = async (bench: WalletBench, caller: Caller, confirmation: number) => {
  const webhook_id = randomUUIDv7()
  await pool.query(
    `insert into webhook (webhook_id, organization_id, chain_id, webhook_endpoint, confirmation,
       webhook_state, secret_sealed, next_sequence, create_time, update_time)
     values ($1, $2, $3, 'https://example.org', $4, 'WEBHOOK_STATE_ENABLED', $5, 1, now(), now())`,
    [webhook_id, caller.organization_id, bench.chain_id, confirmation, randomBytes(8)],
  )
  return webhook_id
}

const told = async (webhook_id: string) =>
  (
    await pool.query(
      'select sequence, data from delivery where webhook_id = $1 and sequence is not null order by 1',
      [webhook_id],
    )
  ).rows

const listAll = async (caller: Caller, request: object) => {
  const found = []
  let page_token = ''
  do {
    const page = await caller.call('ListTransfers', {
      page_size: 2,
      ...request,
      ...(page_token && { page_token }),
    })
    found.push(...page.transfers)
    page_token = page.pagination.next_page_token
  } while (page_token)
  return found
}

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
      chain_id: bench.chain_id,
      chain: bench.chain,
      pollMs: 50,
    })
    onTestFinished(importer.stop)
    await waitFor('the rest is read', async () => (await count()) === 251)
    await waitFor('the job is gone', async () => {
      const { rows } = await pool.query('select 1 from job where chain_id = $1', [bench.chain_id])
      return rows.length === 0
    })
  })

  it('tells webhooks once per transaction, when it is confirmed', async () => {
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
    const [first] = await told(now)
    expect(await told(later)).toEqual([])
    expect(first).toMatchObject({ sequence: 1, data: { confirmations: 1, sequence: 1 } })
    expect(first.data.transfers).toMatchObject([
      { wallet_id, value: '7' },
      { wallet_id, value: '8' },
    ])
    chain.mine()
    chain.mine()
    await settled(bench)
    expect(await told(now)).toHaveLength(1)
    expect(await told(later)).toMatchObject([{ sequence: 1, data: { confirmations: 3 } }])
  })

  it('goes on where it was, also in another process', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    const first = start()
    await settled(bench)
    chain.mine([{ movements: [{ from: account(9), to: account(1), value: 1n }] }])
    await settled(bench)
    const begun = performance.now()
    await first.stop()
    expect(performance.now() - begun).toBeLessThan(1_000)
    for (let value = 2n; value < 130n; value++)
      chain.mine([{ movements: [{ from: account(9), to: account(1), value }] }])
    start()
    await settled(bench)
    expect(await listAll(caller, { wallet_id, page_size: 100 })).toHaveLength(129)
  })

  it('records blocks that nobody has as a gap and reads the balances again', async () => {
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
    // The first block after the gap has the ten confirmations of C, the default.
    for (let i = 0; i < 4; i++) chain.mine()
    await settled(bench)
    const { assets } = await caller.call('ListAssets', { wallet_id, asset_type })
    const confirmed = service === 'c' ? 15 : 20
    expect(assets).toMatchObject([{ balance: String(1_000_000 + confirmed) }])
  })
})

describe('a reorganization in c', () => {
  let scene: Awaited<ReturnType<typeof startBench>>
  beforeAll(async () => {
    scene = await startBench('c')
  })

  it('drops transfers, reads balances again and takes back what was told', async () => {
    const { bench, caller, start } = scene
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
    const states = (await told(now)).map(({ data }) => [
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
    expect((await told(now)).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
    for (let i = 0; i < 3; i++) chain.mine()
    await settled(bench)
    expect((await told(later)).map(({ data }) => data.transfers[0].value)).toEqual(['9'])
  })

  it('that leaves less than was stored waits for the new branch', async () => {
    const { bench, caller, start } = scene
    const { chain, account } = bench
    start()
    await settled(bench)
    chain.mine([{ movements: [{ from: account(9), to: account(1), value: 3n }] }])
    await settled(bench)
    const before = (await findCursor(db, bench.chain_id))!.block_number
    chain.reorganize(1, [])
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect((await findCursor(db, bench.chain_id))!.block_number).toBe(before)
    chain.mine()
    chain.mine()
    await settled(bench)
    const request = { address: bench.address(1), page_size: 100 }
    const values = (await listAll(caller, request)).map(({ value }) => value)
    expect(values).not.toContain('3')
  })
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
  await waitFor('the tracker says so', () => tracker.status().state === 'failing')
  expect(tracker.status().last_error).toContain('no longer')
  expect(await listAll(caller, { wallet_id })).toHaveLength(1)
})

describe('several processes', () => {
  it('have one tracker, and another one when that is gone', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account, address } = bench
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    const trackers = [start(), start()]
    await settled(bench)
    await waitFor('one leads', () => trackers.some(({ status }) => status().state === 'leading'))
    expect(trackers.map(({ status }) => status().state).toSorted()).toEqual(['leading', 'waiting'])
    await trackers.find(({ status }) => status().state === 'leading')!.stop()
    chain.mine([{ movements: [{ from: account(9), to: account(1), value: 1n }] }])
    await settled(bench)
    expect(await listAll(caller, { wallet_id })).toHaveLength(1)
  })

  it('refuse what is written in the name of a lease that has passed on', async () => {
    const { bench } = await startBench('c')
    const { chain, chain_id } = bench
    const name = `fencing-${chain_id}`
    const claim = (holder: string, ttl_ms: number) => acquireLease(db, { name, holder, ttl_ms })
    const first = await claim(randomUUID(), 1)
    await waitFor('it expires', async () => (await claim(randomUUID(), 60_000)) !== undefined)
    const lease = { name, epoch: first!.epoch }
    const tools = { db, clock: systemClock, chain_id, chain, lease, window: 64 }
    await expect(storeBeginning(tools, chain.canonical()[0]!)).rejects.toThrow(LeaseLostError)
    expect(await findCursor(db, chain_id)).toBeUndefined()
  })

  it('read what an operation has promised while no node answered', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, chain_id, address } = bench
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    start()
    await settled(bench)
    chain.setMode('down')
    const asset_type = 'ASSET_TYPE_C'
    await caller.call('RefreshAssetBalances', { wallet_id, asset_type })
    const list = async () => (await caller.call('ListAssets', { wallet_id, asset_type })).assets
    expect(await list()).toEqual([])
    chain.setMode('up')
    const importer = startImporter({
      db,
      clock: systemClock,
      log: silentLog,
      chain_id,
      chain,
      pollMs: 20,
    })
    onTestFinished(importer.stop)
    await waitFor('it is read', async () => (await list()).length === 1)
  })
})
