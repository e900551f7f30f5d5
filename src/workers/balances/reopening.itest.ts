import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { systemClock } from '../../lib/clock.ts'
import { pageBalances } from '../../storage/balances/reconcile.ts'
import { reopenPage } from '../../storage/balances/reopening.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import { findGapAt, hasUnreopened } from '../../storage/tracking/gaps.ts'
import { acquireLease } from '../../storage/tracking/leases.ts'
import { ensureAssets } from '../../storage/wallets/assets.ts'
import { createMonths } from '../janitor/months.ts'
import { reopenLate } from '../tracker/reopening.ts'
import { findAncestor, rollBack } from '../tracker/reorg.ts'
import { planRewind, runRewind } from '../tracker/rewind.ts'
import { storeBeginning, storeBlocks, storeGap } from '../tracker/store.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { lowerBalances, settleBalances } from './balances.ts'
import { compareBalances } from './compare-balances.ts'
import { reconcilePage } from './reconciling.ts'

const { db, pool } = await freshDatabase()
const never = new AbortController().signal
const addresses = 2_500

/** A wallet with many addresses whose balances are stored, and wrong, as after blocks that were not seen. */
const startWorld = async (service: 'c' | 's', network: string) => {
  const bench = await createWalletBench(db, service, { network })
  const { chain, network_id, account, address } = bench
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation: 1 })
  // A removed wallet delays no other one, however many confirmations it asked for.
  const removed = await caller.call('RegisterWallet', { name: 'removed', confirmation: 30 })
  await caller.call('RemoveWallet', { wallet_id: removed.wallet_id })
  for (let begin = 0; begin < addresses; begin += 500)
    await caller.call('BatchRegisterAddresses', {
      wallet_id,
      addresses: Array.from({ length: 500 }, (_, index) => address(begin + index + 10)),
    })
  const name = `tracker:${service}:${network}`
  const lease = await acquireLease(db, { name, holder: randomUUID(), ttl_ms: 600_000 })
  const tools: TrackerTools = {
    ...{ db, network_id, chain, clock: systemClock, window: 256 },
    lease: { name, epoch: lease!.epoch },
  }
  await storeBeginning(tools, chain.canonical()[0]!)
  while ((await settleBalances(tools, never)) > 0);
  await ensureAssets(db, network_id, [chain.native], new Date())
  await pool.query(
    `insert into balance (wallet_id, organization_id, address, asset_id, asset_type,
       contract_address, balance, as_of_block, create_time, position, update_time)
     select t.wallet_id, t.organization_id, t.address,
       (select asset_id from asset where network_id = $1 and contract_address = ''), $2, '', 1, 0,
       now(), 0, now()
     from wallet_address t where t.wallet_id = $3`,
    [network_id, chain.native.asset_type, wallet_id],
  )
  return { chain, network_id, account, tools }
}

const count = async (sql: string, network_id: number) =>
  Number((await pool.query(sql, [network_id])).rows[0].count)
const wrong = (network_id: number) =>
  count(
    'select count(*) from balance b join wallet w using (wallet_id) where w.network_id = $1 and b.balance = 1',
    network_id,
  )
const work = (network_id: number) =>
  count('select count(*) from balance_change where network_id = $1', network_id)

describe('balances after blocks that no node has', () => {
  it.each(['c', 's'] as const)(
    'are read again page by page behind new work (%s)',
    async (service) => {
      const world = await startWorld(service, `gap-${service}`)
      const { chain, network_id, account, tools } = world
      for (let block = 0; block < 20; block++) chain.mine()
      const [first, last] = [chain.canonical()[0]!, chain.canonical()[18]!]
      await storeGap(tools, first, {
        ...{ kind: 'gap' as const, from: 1, reason: 'pruned' },
        to: { number: last.number, hash: last.hash },
      })
      // The transaction that passes the gap made no work, however many balances there are.
      expect(await work(network_id)).toBe(0)
      // Not before the first block that is there again.
      expect(await settleBalances(tools, never)).toBe(0)
      const next = async () => {
        const { block_number: at } = (await findCursor(db, network_id))!
        const block = chain.canonical()[at + 1]!
        await createMonths(db)([block.time])
        await storeBlocks(tools, [block])
      }
      await next()
      expect(await settleBalances(tools, never)).toBe(1_000)
      expect(await work(network_id)).toBe(1_000)
      // A deposit, of which the next round finds nothing wrong but the page beside it.
      chain.mine([
        {
          // Some of them are on the page, so that two kinds of work ask for the same balance.
          movements: [9_999, ...Array.from({ length: 40 }, (_, index) => 10 + index * 60)].map(
            (number) => ({ to: account(number), value: 5n }),
          ),
        },
      ])
      await next()
      await settleBalances(tools, never)
      expect(await wrong(network_id)).toBeGreaterThan(addresses - 1_100)
      expect(await wrong(network_id)).toBeLessThanOrEqual(addresses - 1_000)
      // After a crash, work resumes behind the last page.
      let pages = 0
      while ((await settleBalances(tools, never)) > 0) pages++
      expect(pages).toBeLessThan(8)
      expect(await wrong(network_id)).toBe(0)
      expect(await work(network_id)).toBe(0)
      expect(
        await count('select count(*) from balance_reopening where network_id = $1', network_id),
      ).toBe(0)
    },
  )

  it('are lowered page by page after a rewind below the stored blocks, and then read again', async () => {
    const { chain, network_id, tools } = await startWorld('c', 'rewound')
    const next = async () => {
      const { number, time } = chain.mine()
      await createMonths(db)([time])
      await storeBlocks(tools, [chain.canonical()[number]!])
    }
    for (let block = 0; block < 9; block++) await next()
    await pool.query(
      'update balance b set as_of_block = 9 from wallet w where w.wallet_id = b.wallet_id and w.network_id = $1',
      [network_id],
    )
    for (const table of ['block', 'balance_reading'])
      await pool.query(`delete from ${table} where network_id = $1 and block_number < 8`, [
        network_id,
      ])
    const claiming = () =>
      count(
        'select count(*) from balance b join wallet w using (wallet_id) where w.network_id = $1 and b.as_of_block > 4',
        network_id,
      )
    const options = { db, clock: systemClock, network_id, chain, to: 4, signal: never }
    await runRewind(options, await planRewind(options))
    // The transaction that went back changed no balance, however many there are.
    expect([await claiming(), await work(network_id)]).toEqual([addresses, 0])
    expect(await lowerBalances(tools)).toBe(1_000)
    expect(await claiming()).toBe(addresses - 1_000)
    // A second one restarts the walk at the lower block, which includes the first.
    const lower = { ...options, to: 3 }
    await runRewind(lower, await planRewind(lower))
    const pages = []
    for (let looked = 1; looked > 0; pages.push(looked)) looked = await lowerBalances(tools)
    expect(pages).toEqual([1_000, 1_000, 500, 0])
    expect(await claiming()).toBe(0)
    for (let at = 4; at < 10; at++) await storeBlocks(tools, [chain.canonical()[at]!])
    while ((await settleBalances(tools, never)) > 0);
    expect([await wrong(network_id), await work(network_id)]).toEqual([0, 0])
  })

  it('are stored once where work to be read ahead and newer work are both confirmed', async () => {
    const { chain, network_id, tools } = await startWorld('c', 'both')
    for (let block = 0; block < 3; block++) {
      chain.mine()
      const mined = chain.canonical().at(-1)!
      await createMonths(db)([mined.time])
      await storeBlocks(tools, [mined])
    }
    await pool.query(
      `insert into balance_change (wallet_id, address, asset_id, block_number, organization_id,
         network_id, due_block, ahead)
       select b.wallet_id, b.address, b.asset_id, n, b.organization_id, $1, n, case when n = 2 then true end
       from balance b join wallet w using (wallet_id), generate_series(2, 3) n where w.network_id = $1`,
      [network_id],
    )
    while ((await settleBalances(tools, never)) > 0);
    expect(await wrong(network_id)).toBe(0)
    expect(await work(network_id)).toBe(0)
  })
})

/** A wallet of a chain, and the steps of its tracker one at a time. */
const startInSteps = async (service: 'c' | 's', network: string, { confirmation = 3 } = {}) => {
  const bench = await createWalletBench(db, service, { network })
  const { chain, network_id, account, address } = bench
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation })
  const name = `tracker:${service}:${network}`
  const lease = await acquireLease(db, { name, holder: randomUUID(), ttl_ms: 600_000 })
  const tools: TrackerTools = {
    ...{ db, network_id, chain, clock: systemClock, window: 256 },
    lease: { name, epoch: lease!.epoch },
  }
  const settle = async () => {
    while ((await settleBalances(tools, never)) > 0);
  }
  const store = async (...movements: { to: Buffer; from: Buffer; value: bigint }[][]) => {
    for (const some of movements) chain.mine([{ movements: some }])
    const blocks = chain.canonical().slice(-movements.length)
    await createMonths(db)(blocks.map(({ time }) => time))
    for (const block of blocks) await storeBlocks(tools, [block])
  }
  const pay = (value: bigint) => [{ from: account(9), to: account(1), value }]
  await storeBeginning(tools, chain.canonical()[0]!)
  await settle()
  const skip = async () => {
    const [before, lost] = chain.canonical().slice(-2)
    const to = { number: lost!.number, hash: lost!.hash }
    await storeGap(tools, before!, { kind: 'gap', from: to.number, to, reason: 'unreadable' })
  }
  const balances = async (): Promise<string[]> => {
    const asset_type = chain.native.asset_type
    const { assets } = await caller.call('ListAssets', { wallet_id, asset_type })
    return assets.map(({ balance }: { balance: string }) => balance)
  }
  return {
    tools,
    chain,
    caller,
    network_id,
    wallet_id,
    account,
    address,
    settle,
    store,
    skip,
    pay,
    balances,
  }
}

it('a reading that is confirmed together with a later net change is not lost', async () => {
  const { tools, chain, caller, network_id, wallet_id, address, ...world } = await startInSteps(
    's',
    'both-due',
  )
  const { settle, store, skip, pay, balances } = world
  await caller.call('RegisterAddress', { wallet_id, address: address(1), import_asset: true })
  await store([], [])
  await settle()
  chain.mine([{ movements: pay(5n) }])
  await skip()
  // The comparison with the chain leaves it to that reading.
  const { balances: page } = await pageBalances(db, network_id, { after: undefined, limit: 10 })
  expect(await reconcilePage(tools, page, never)).toBeUndefined()
  await store([], [], [])
  // Until the balance was read again, and not until it is stored.
  const isRead = () =>
    count('select count(*) from balance_pending where network_id = $1', network_id)
  while ((await isRead()) === 0) await settleBalances(tools, never)
  await store(pay(1n), [], [])
  await settle()
  expect(await balances()).toEqual(['1000006'])
})

it('a reading that holds the changes of a gap waits for their confirmations, also when another gap follows', async () => {
  const { tools, chain, caller, network_id, wallet_id, account, ...world } = await startInSteps(
    ...(['s', 'two-gaps', { confirmation: 40 }] as const),
  )
  const { settle, store, skip } = world
  const numbers = [1, 2]
  for (const number of numbers) {
    const request = { wallet_id, address: world.address(number), import_asset: true }
    await caller.call('RegisterAddress', request)
  }
  const pay = (value: bigint) => numbers.map((to) => ({ from: account(9), to: account(to), value }))
  for (let block = 0; block < 50; block++) await store(pay(1n))
  await settle()
  chain.mine([{ movements: [] }])
  await skip()
  await store([])
  const { block_number: head } = (await findCursor(db, network_id))!
  // The walk has begun, so it continues behind the next gap.
  await reopenPage(db, { network_id, head, now: new Date(), limit: 1, most_addresses: 1_000 })
  for (let block = 0; block < 20; block++) await store([])
  chain.mine([{ movements: pay(500n) }])
  await skip()
  await store([])
  await store([])
  await settle()
  chain.mine([{ movements: [] }])
  await skip()
  const early: string[] = []
  for (let block = 0; block < 45; block++) {
    await store([])
    await settle()
    const { block_number } = (await findCursor(db, network_id))!
    const { rows } = await pool.query<{ address: Buffer; balance: string }>(
      'select address, balance::text from balance where wallet_id = $1',
      [wallet_id],
    )
    for (const { address, balance } of rows) {
      const confirmed = chain.balanceAt({ address, asset: chain.native }, block_number - 39)
      if (BigInt(balance) > confirmed) early.push(`${balance} at ${block_number}`)
    }
  }
  expect(early).toEqual([])
})

describe('a comparison of C leaves all balances to their reading, and reports none of them', () => {
  const startCompared = async (network: string) => {
    const world = await startInSteps('c', network, { confirmation: 1 })
    const { tools, caller, network_id, wallet_id, address, store, settle, pay } = world
    await caller.call('RegisterAddress', { wallet_id, address: address(1) })
    for (let block = 0; block < 9; block++) await store(pay(1n))
    await settle()
    const { balances: page } = await pageBalances(db, network_id, { after: undefined, limit: 10 })
    const compare = () => compareBalances(tools, page, never)
    expect(await compare()).toMatchObject({ compared: 1, differences: [] })
    return { ...world, compare }
  }

  it('after a gap', async () => {
    const { chain, store, skip, settle, pay, balances, compare } =
      await startCompared('compared-gap')
    chain.mine([{ movements: pay(5n) }])
    await skip()
    await store([])
    expect(await compare()).toBeUndefined()
    await settle()
    expect(await compare()).toMatchObject({ compared: 1, differences: [] })
    expect(await balances()).toEqual(['1000014'])
  })

  it('after a rewind below the stored blocks', async () => {
    const { tools, chain, network_id, settle, balances, compare } =
      await startCompared('compared-rewind')
    for (const table of ['block', 'balance_reading'])
      await pool.query(`delete from ${table} where network_id = $1 and block_number < 8`, [
        network_id,
      ])
    const options = { db, clock: systemClock, network_id, chain, to: 4, signal: never }
    await runRewind(options, await planRewind(options))
    while ((await lowerBalances(tools)) > 0);
    for (const at of [5, 6]) await storeBlocks(tools, [chain.canonical()[at]!])
    expect(await compare()).toBeUndefined()
    await settle()
    expect(await compare()).toMatchObject({ compared: 1, differences: [] })
    expect(await balances()).toEqual(['1000006'])
  })
})

it('a reading by a node that was ahead does not count a block that becomes a gap before it is confirmed', async () => {
  const { tools, chain, caller, wallet_id, address, ...world } = await startInSteps('s', 'ahead')
  const { settle, store, skip, pay, balances } = world
  await caller.call('RegisterAddress', { wallet_id, address: address(1), import_asset: false })
  await store(pay(1n), [], [])
  // The node has the next block when the first change is confirmed.
  chain.mine([{ movements: pay(5n) }])
  expect(await settleBalances(tools, never)).toBe(1)
  await skip()
  await settle()
  expect(await balances()).toEqual([])
  await store([], [], [])
  await settle()
  expect(await balances()).toEqual(['1000006'])
})

it.each([
  { service: 'c', confirmation: 40, read: {}, first: [] },
  { service: 's', confirmation: 4, read: { import_asset: true }, first: ['1000000'] },
] as const)(
  'what was read before a gap becomes the balance when its own block is confirmed ($service)',
  async ({ service, confirmation, read, first }) => {
    const { chain, caller, wallet_id, address, ...world } = await startInSteps(
      service,
      `before-${service}`,
      { confirmation },
    )
    const { settle, store, skip, pay, balances } = world
    await caller.call('RegisterAddress', { wallet_id, address: address(1), ...read })
    await store(pay(1n))
    await settle()
    chain.mine([{ movements: pay(5n) }])
    await skip()
    // All balances are read again here; the first payment lacks one confirmation.
    const blocks = (count: number) => Array.from({ length: count }, () => [])
    await store(...blocks(confirmation - 3))
    await settle()
    expect(await balances()).toEqual(first)
    await store([])
    await settle()
    expect(await balances()).toEqual(['1000001'])
    await store(...blocks(confirmation))
    await settle()
    expect(await balances()).toEqual(['1000006'])
  },
)

it('a first balance that waits for its confirmation has the changes of a gap, although the work of the walk left the chain', async () => {
  const { tools, chain, caller, network_id, address, ...world } = await startInSteps(
    'c',
    'undone-walk',
    { confirmation: 40 },
  )
  const { wallet_id, settle, store, skip, pay, balances } = world
  await caller.call('RegisterAddress', { wallet_id, address: address(1) })
  await store(pay(1n))
  await settle()
  chain.mine([{ movements: pay(5n) }])
  await skip()
  await store([])
  // Its work is made and not done yet.
  await reopenPage(db, {
    ...{ network_id, head: 3, now: new Date(), limit: 10, most_addresses: 10 },
  })
  expect(await work(network_id)).toBe(1)
  chain.reorganize(1, [[]])
  await rollBack(tools, (await findAncestor(tools, never))!)
  await storeBlocks(tools, chain.canonical().slice(-1))
  await settle()
  await store(...Array.from({ length: 40 }, () => []))
  await settle()
  expect(await balances()).toEqual(['1000006'])
})

it.each([1, 3, 40])(
  'net changes that are stored again after a rewind are not added twice, at no step (%i confirmations)',
  async (confirmation) => {
    const { tools, chain, caller, network_id, wallet_id, address, ...world } = await startInSteps(
      's',
      `again-${confirmation}`,
      { confirmation },
    )
    const { settle, store, pay } = world
    await caller.call('RegisterAddress', { wallet_id, address: address(1), import_asset: true })
    for (let block = 0; block < 60; block++) await store(pay(1n))
    await settle()
    const shown = async () =>
      (
        await pool.query<{ balance: bigint; as_of_block: number; is_stale: boolean | null }>(
          'select balance, as_of_block::int4, is_stale from balance where wallet_id = $1',
          [wallet_id],
        )
      ).rows
    const valueAt = (block_number: number) =>
      chain.balanceAt({ address: world.account(1), asset: chain.native }, block_number)
    const before = await shown()
    expect(before).toMatchObject([{ balance: valueAt(60 - confirmation + 1) }])
    // Settled page by page, so that what is shown is seen between all transactions.
    const compare = async () => {
      const [row] = await shown()
      if (row!.is_stale) expect(row!.balance).toBe(before[0]!.balance)
      else expect(row!.balance).toBe(valueAt(row!.as_of_block))
    }
    const options = { db, clock: systemClock, network_id, chain, to: 45, signal: never }
    await runRewind(options, await planRewind(options))
    for (const block of chain.canonical().slice(46)) {
      await compare()
      if (block.number % 3 === 0) while ((await settleBalances(tools, never)) > 0) await compare()
      if (block.number === 50)
        await caller.call('RefreshAssetBalances', {
          ...{ wallet_id, address: address(1), asset_type: chain.native.asset_type },
        })
      await compare()
      await storeBlocks(tools, [block])
    }
    for (let block = 0; block < confirmation + 3; block++) {
      while ((await settleBalances(tools, never)) > 0) await compare()
      await store(pay(1n))
    }
    await settle()
    const newest = chain.canonical().length - 1
    const confirmed = newest - confirmation + 1
    expect(await shown()).toEqual([
      { balance: valueAt(confirmed), as_of_block: expect.any(Number), is_stale: null },
    ])
  },
)

/** A walk through all balances, as it is stored. */
const walkOf = async (network_id: number) => {
  const { rows } = await pool.query<{ block_number: string; is_begun: boolean; lower_to: string }>(
    `select block_number::int4, lower_to::int4, address is not null as is_begun
     from balance_reopening where network_id = $1`,
    [network_id],
  )
  return rows[0]
}

/** A world whose clock is moved, and which has one block of each kind at a time. */
const startMoved = async (service: 'c' | 's', network: string) => {
  const { tools: started, ...world } = await startWorld(service, network)
  const { chain, network_id, account } = world
  const time = { now: Date.now() }
  const tools = { ...started, clock: { ...systemClock, now: () => time.now } }
  // Some addresses of each page. What they get is in no transaction that is seen.
  const receivers = Array.from({ length: 50 }, (_, index) => account(10 + index * 50))
  const mine = async () => {
    const movements = receivers.map((to) => ({ from: account(9), to, value: 5n, isInner: true }))
    const { number, hash, time } = chain.mine([{ movements }])
    await createMonths(db)([time])
    return { number, hash }
  }
  return {
    ...{ ...world, tools, time },
    whole: async () => {
      const { number, parent_hash, time } = chain.mine()
      await createMonths(db)([time])
      const lacks = await findGapAt(db, network_id, number - 1)
      const after = { number: number - 1, hash: parent_hash, ...(lacks && { lacks }) }
      await storeBlocks(tools, [chain.canonical()[number]!], { after })
      return number
    },
    untraced: async () => {
      const { number } = await mine()
      await storeBlocks(tools, [chain.canonical()[number]!.untraced(true)])
      return number
    },
    unreadable: async () => {
      const to = await mine()
      const before = chain.canonical()[to.number - 1]!
      await storeGap(tools, before, { kind: 'gap', from: to.number, to, reason: 'unreadable' })
      return to.number
    },
    /** Makes work of one page of the walk, and reads that. */
    readPage: async () => {
      for (let step = 0; step < 2; step++) expect(await settleBalances(tools, never)).toBe(1_000)
    },
    settle: async () => {
      while ((await settleBalances(tools, never)) > 0);
    },
    /** How many balances have what so many blocks paid. */
    paid: (blocks: number) =>
      count(
        `select count(*) from balance b join wallet w using (wallet_id)
         where w.network_id = $1 and b.balance = ${1_000_000 + 5 * blocks}`,
        network_id,
      ),
  }
}

describe('a walk through all balances that is under way', () => {
  it('continues while more blocks are incomplete, and all are read again when the pause since its end is over', async () => {
    const { tools, network_id, time, ...world } = await startMoved('c', 'untraced')
    await world.whole()
    const first = await world.untraced()
    time.now += 11 * 60_000
    await reopenLate(tools)
    await world.readPage()
    // Each of them asks for another walk, for as long as no node traces.
    for (let block = 0; block < 3; block++) {
      await world.untraced()
      await reopenLate(tools)
      time.now += 11 * 60_000
      expect(await walkOf(network_id)).toMatchObject({ block_number: first, is_begun: true })
    }
    await world.settle()
    expect(await walkOf(network_id)).toBeUndefined()
    // The first page was read before the last blocks.
    expect(await world.paid(4)).toBeLessThan(50)
    time.now += 9 * 60_000
    await reopenLate(tools)
    expect(await walkOf(network_id)).toBeUndefined()
    const last = await world.untraced()
    time.now += 2 * 60_000
    await reopenLate(tools)
    expect(await walkOf(network_id)).toMatchObject({ block_number: last, is_begun: false })
    await world.settle()
    expect(await world.paid(5)).toBe(50)
    // Nothing is left to be read again.
    time.now += 11 * 60_000
    await reopenLate(tools)
    expect(await walkOf(network_id)).toBeUndefined()
  })

  it('begins once a short run of incomplete blocks is over, and not before', async () => {
    const { tools, network_id, time, ...world } = await startMoved('c', 'short')
    for (let block = 0; block < 3; block++) {
      await world.untraced()
      time.now += 2 * 60_000
      await reopenLate(tools)
    }
    expect(await walkOf(network_id)).toBeUndefined()
    const end = await world.whole()
    expect(await walkOf(network_id)).toMatchObject({ block_number: end, is_begun: false })
    await world.settle()
    expect(await world.paid(3)).toBe(50)
  })

  it('is not put off for longer than the pause by blocks that no node has', async () => {
    const { tools, network_id, time, ...world } = await startMoved('c', 'put-off')
    const first = await world.unreadable()
    time.now += 9 * 60_000
    const second = await world.unreadable()
    expect(await walkOf(network_id)).toMatchObject({ block_number: second + 1 })
    for (let block = 0; block < 2; block++) {
      time.now += 2 * 60_000
      await world.unreadable()
      expect(await walkOf(network_id)).toMatchObject({ block_number: second + 1 })
    }
    expect(second).toBe(first + 1)
    await world.settle()
    // Behind the walk that is over, the next gap begins another one at once.
    const last = await world.unreadable()
    expect(await walkOf(network_id)).toMatchObject({ block_number: last + 1 })
    await world.whole()
    await world.settle()
    expect(await world.paid(5)).toBe(50)
    expect(await hasUnreopened(db, network_id)).toBe(false)
  })

  it.each(['c', 's'] as const)(
    'continues when a block is passed that no node has, and all are read again after it (%s)',
    async (service) => {
      const { tools, network_id, time, ...world } = await startMoved(service, `passed-${service}`)
      // Those that follow each other cost one walk.
      await world.unreadable()
      const second = await world.unreadable()
      expect(await walkOf(network_id)).toMatchObject({ block_number: second + 1, is_begun: false })
      await world.whole()
      await world.readPage()
      await world.unreadable()
      expect(await walkOf(network_id)).toMatchObject({ block_number: second + 1, is_begun: true })
      // The comparison with the chain does not report what that reading will find.
      const { balances: page } = await pageBalances(db, network_id, {
        ...{ after: undefined, limit: 10, most_addresses: 50_000 },
      })
      await world.whole()
      await world.settle()
      expect(await walkOf(network_id)).toBeUndefined()
      expect(await world.paid(3)).toBeLessThan(50)
      if (service === 's') expect(await reconcilePage(tools, page, never)).toBeUndefined()
      time.now += 11 * 60_000
      await reopenLate(tools)
      await world.settle()
      expect(await world.paid(3)).toBe(50)
      if (service === 's')
        expect(await reconcilePage(tools, page, never)).toEqual({ compared: 10, differences: [] })
    },
  )

  it('begins again at once after a rewind below the stored blocks', async () => {
    const { tools, chain, network_id, ...world } = await startMoved('c', 'restarted')
    for (let block = 0; block < 8; block++) await world.whole()
    await world.untraced()
    await world.whole()
    expect(await settleBalances(tools, never)).toBe(1_000)
    await pool.query('delete from block where network_id = $1 and block_number < 7', [network_id])
    const options = { db, clock: systemClock, network_id, chain, to: 4, signal: never }
    await runRewind(options, await planRewind(options))
    expect(await walkOf(network_id)).toEqual({ block_number: 4, lower_to: 4, is_begun: false })
  })
})
