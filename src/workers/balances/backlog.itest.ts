import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench, type WalletBench } from '../../../test/helpers/wallets.ts'
import { systemClock } from '../../lib/clock.ts'
import { pageBalances } from '../../storage/balances/reconcile.ts'
import { acquireLease } from '../../storage/tracking/leases.ts'
import { createMonths } from '../janitor/months.ts'
import { storeBeginning, storeBlocks } from '../tracker/store.ts'
import { settleBalances } from './balances.ts'
import { reconcilePage } from './reconciling.ts'

const database = await freshDatabase()
const { startBench, settled } = createTrackedBenches(database)

const openBacklogs = async ({ network_id }: WalletBench): Promise<number> => {
  const query = 'select 1 from balance_backlog where network_id = $1'
  return (await database.pool.query(query, [network_id])).rows.length
}

/**
 * Two organizations that track one address with some confirmations, and blocks that their tracker has
 * to catch up with. Readings hang once the node has answered, until they are let go.
 */
const startBehind = async ({ confirmation = 1, farBehind = 0 } = {}) => {
  const { bench, caller, start } = await startBench('c')
  const { chain, account, address } = bench
  const token = {
    asset_type: 'ASSET_TYPE_ERC20' as const,
    contract_address: account(77),
    token_id: 0n,
  }
  chain.addToken(account(77), 'CONTRACT_TYPE_ERC20')
  const join = async (member: typeof caller) => {
    const contract = { contract_address: address(77), contract_type: 'CONTRACT_TYPE_ERC20' }
    await member.call('RegisterContract', contract)
    const wallet = { name: 'w', address: address(1), confirmation }
    const { wallet_id } = await member.call('RegisterWallet', wallet)
    const balances = async () => {
      const found: string[] = []
      for (const asset_type of ['ASSET_TYPE_C', 'ASSET_TYPE_ERC20'])
        for (const asset of (await member.call('ListAssets', { wallet_id, asset_type })).assets)
          found.push(asset.balance)
      return found
    }
    return { ...member, wallet_id, balances }
  }
  const one = await join(caller)
  const other = await join(await bench.createCaller())
  const first = start()
  await settled(bench)
  await first.stop()
  for (let value = 1n; value <= 6n; value++)
    chain.mine([
      {
        movements: [
          { to: account(1), value },
          { to: account(1), value, asset: token },
        ],
      },
    ])
  let asked = 0
  let gate = Promise.withResolvers<void>()
  const { readBalances } = chain
  chain.readBalances = async (...question) => {
    const answer = await readBalances(...question)
    asked++
    await gate.promise
    return answer
  }
  const letGo = () => {
    gate.resolve()
    gate = Promise.withResolvers()
    gate.resolve()
  }
  return {
    ...{ bench, chain, account, address, one, other, token, readBalances, letGo },
    start: () => start({ farBehind }),
    isAsked: async () => await waitFor('a balance is read', () => asked > 0),
  }
}

describe('balance work of blocks far behind the head', () => {
  it('waits in one row for all, and is read for all', async () => {
    const { bench, one, other, start, isAsked, letGo } = await startBehind()
    start()
    await isAsked()
    expect(await openBacklogs(bench)).toBeGreaterThan(0)
    const { rows } = await database.pool.query(
      'select 1 from balance_change where network_id = $1',
      [bench.network_id],
    )
    expect(rows).toEqual([])
    letGo()
    await settled(bench)
    expect(await openBacklogs(bench)).toBe(0)
    expect(await one.balances()).toEqual(['1000021', '21'])
    expect(await other.balances()).toEqual(['1000021', '21'])
  })

  it('waits by itself where it is not due once the head is reached', async () => {
    const { bench, chain, one, start, letGo } = await startBehind({ confirmation: 4 })
    letGo()
    start()
    await settled(bench)
    // Three of six blocks have four confirmations.
    expect(await one.balances()).toEqual(['1000006', '6'])
    chain.mine()
    await settled(bench)
    expect(await one.balances()).toEqual(['1000010', '10'])
  })

  it('is done after a crash between reading and storing', async () => {
    const { bench, one, start, isAsked, letGo } = await startBehind()
    const tracker = start()
    await isAsked()
    const stopped = tracker.stop()
    await database.pool.query('delete from lease')
    letGo()
    await stopped
    expect(await openBacklogs(bench)).toBeGreaterThan(0)
    start()
    await settled(bench)
    expect(await one.balances()).toEqual(['1000021', '21'])
  })

  it('is read for the readable accounts when some accounts cannot be read', async () => {
    const { chain, account, one, readBalances, start } = await startBehind()
    chain.readBalances = async (queries, ...rest) => {
      const readings = await readBalances(queries, ...rest)
      return readings.map((reading, at) =>
        queries[at]!.asset.contract_address.length > 0 ? { ...reading, balance: null } : reading,
      )
    }
    start()
    await waitFor('the coin is read', async () => (await one.balances())[0] === '1000021')
    expect(await one.balances()).toEqual(['1000021', '0'])
    chain.readBalances = readBalances
    for (let block = 0; block < 40; block++) chain.mine()
    chain.mine([{ movements: [{ to: account(1), value: 0n }] }])
    await waitFor('and the token', async () => (await one.balances())[1] === '21')
  })
})

describe('what happens while a backlog is read', () => {
  it('an address that is removed leaves nothing to its wallet, and the other organization its own', async () => {
    const { bench, address, one, other, start, isAsked, letGo } = await startBehind()
    start()
    await isAsked()
    const { wallet_id } = one
    await one.call('RemoveAddress', { wallet_id, address: address(1) })
    letGo()
    await settled(bench)
    expect(await one.balances()).toEqual([])
    expect(await other.balances()).toEqual(['1000021', '21'])
  })

  it.each(['RemoveAddress', 'BatchRemoveAddresses'])(
    'an address that comes again after %s starts without a balance',
    async (operation) => {
      const { bench, chain, account, address, one, other, start, isAsked, letGo } =
        await startBehind()
      start()
      await isAsked()
      const { wallet_id } = one
      await one.call(operation, {
        wallet_id,
        ...(operation === 'RemoveAddress' ? { address: address(1) } : { remove_all: true }),
      })
      await one.call('RegisterAddress', { wallet_id, address: address(1) })
      letGo()
      await settled(bench)
      expect(await one.balances()).toEqual([])
      expect(await other.balances()).toEqual(['1000021', '21'])
      chain.mine([{ movements: [{ to: account(1), value: 9n }] }])
      await settled(bench)
      expect(await one.balances()).toEqual(['1000030'])
    },
  )

  it('a contract that is removed leaves nothing of its token, and the coin as it is', async () => {
    const { bench, address, one, other, start, isAsked, letGo } = await startBehind()
    start()
    await isAsked()
    await one.call('RemoveContract', { contract_address: address(77) })
    letGo()
    await settled(bench)
    expect(await one.balances()).toEqual(['1000021'])
    expect(await other.balances()).toEqual(['1000021', '21'])
  })

  it('a confirmation that changes lets work wait that was not due', async () => {
    const behind = await startBehind({ confirmation: 3 })
    const { bench, chain, one, other, start, letGo } = behind
    letGo()
    const { follow } = chain
    const gate = Promise.withResolvers<void>()
    // The tracker stands at block 3 of 6 for a while.
    chain.follow = async function* (...question) {
      for await (const event of follow(...question)) {
        if (event.kind !== 'blocks') throw new Error(`unexpected ${event.kind}`)
        yield { ...event, blocks: event.blocks.slice(0, 3) }
        await gate.promise
        if (event.blocks.length > 3) yield { ...event, blocks: event.blocks.slice(3) }
      }
    }
    const tracker = start()
    await waitFor('three blocks are stored', () => tracker.status().block_number === 3)
    expect(await openBacklogs(bench)).toBe(1)
    await one.call('UpdateConfirmation', { wallet_id: one.wallet_id, confirmation: 10 })
    gate.resolve()
    await settled(bench)
    expect(await other.balances()).toEqual(['1000010', '10'])
    // Block 1 had its confirmations before.
    expect(await one.balances()).toEqual(['1000001', '1'])
  })

  it.each([
    [4, ['1000003', '3']],
    // What no block of the chain touches was never seen.
    [6, []],
  ])('%i of 6 blocks that leave the chain take their work with them', async (depth, left) => {
    const { bench, chain, account, one, start, isAsked, letGo } = await startBehind()
    const tracker = start()
    await isAsked()
    const other = { movements: [{ to: account(2), value: 1n }] }
    chain.reorganize(depth, [[other], [], [], [], [], [], []])
    await waitFor('blocks are taken back', () => tracker.status().reorganizations > 0)
    letGo()
    await settled(bench)
    expect(await one.balances()).toEqual(left)
  })
})

it('ordinary work of the same pair is done beside its backlog', async () => {
  const { bench, chain, account, one, other, start, letGo } = await startBehind({ confirmation: 3 })
  letGo()
  // The last two blocks are ordinary work of the pairs that the backlog names too.
  start()
  await settled(bench)
  expect(await one.balances()).toEqual(['1000010', '10'])
  chain.mine([{ movements: [{ to: account(1), value: 10n }] }])
  chain.mine()
  chain.mine()
  await settled(bench)
  expect(await one.balances()).toEqual(['1000031', '21'])
  expect(await other.balances()).toEqual(['1000031', '21'])
})

it('a balance that a backlog is going to change does not count as wrong', async () => {
  const network = 'backlog-compared'
  const bench = await createWalletBench(database.db, 'p', { network })
  const { chain, network_id, account, address } = bench
  const caller = await bench.createCaller()
  const wallet = { name: 'w', address: address(1), import_asset: true }
  const { wallet_id } = await caller.call('RegisterWallet', wallet)
  const { db } = database
  const owned = { name: network, holder: randomUUID(), ttl_ms: 600_000 }
  const { epoch } = (await acquireLease(db, owned))!
  const lease = { name: network, epoch }
  const tools = { db, clock: systemClock, network_id, chain, lease, window: 64 }
  const { signal } = new AbortController()
  await storeBeginning(tools, chain.canonical().at(-1)!)
  while ((await settleBalances(tools, signal)) > 0);

  chain.mine([{ movements: [{ from: account(2), to: account(1), value: 5n }] }])
  const block = chain.canonical().at(-1)!
  await createMonths(db)([block.time])
  await storeBlocks(tools, [block], { backlogUntil: block.number })
  expect(await openBacklogs(bench)).toBe(1)
  const { balances: page } = await pageBalances(db, network_id, { after: undefined, limit: 10 })
  expect(page).toHaveLength(1)
  expect(await reconcilePage(tools, page, signal)).toEqual({ compared: 0, differences: [] })
  while ((await settleBalances(tools, signal)) > 0);
  const { assets } = await caller.call('ListAssets', { wallet_id, asset_type: 'ASSET_TYPE_P' })
  expect(assets[0].balance).toBe('1000005')
})
