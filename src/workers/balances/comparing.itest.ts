import { randomUUID } from 'node:crypto'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { BlockGoneError, ChainUnavailableError } from '../../chains/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Log, silentLog } from '../../lib/log.ts'
import { acquireLease } from '../../storage/tracking/leases.ts'
import { ensureAssets } from '../../storage/wallets/assets.ts'
import { createMonths } from '../janitor/months.ts'
import { storeBeginning, storeBlocks } from '../tracker/store.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { settleBalances } from './balances.ts'
import { startComparing } from './comparing.ts'
import { startReconciling } from './reconciling.ts'
import type { RoundTimes } from './rounds.ts'

const { db, pool } = await freshDatabase()
const never = new AbortController().signal
const day = 24 * 60 * 60_000
const few = { timeoutMs: 20_000 }

type HastyClock = Clock & {
  /** Stops the clock at this time. */
  holdAt(time: number): void
}

/** A clock on which every wait is over at once, up to the time at which it is held. */
const createHastyClock = (): HastyClock => {
  let now = Date.now()
  let until = Number.POSITIVE_INFINITY
  return {
    now: () => now,
    sleep: async (ms, signal) => {
      await turn()
      while (now + ms > until && !signal?.aborted) await delay(2)
      signal?.throwIfAborted()
      now += ms
    },
    holdAt: (time) => {
      until = time
    },
  }
}

/** A tracked chain with a wallet whose balances are stored, and what is asked of its nodes. */
const startWorld = async (
  service: 'c' | 's',
  network: string,
  { stored, confirmation = 1 }: { stored: number; confirmation?: number },
) => {
  const bench = await createWalletBench(db, service, { network })
  const { chain, network_id, address, account } = bench
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation })
  for (let begin = 0; begin < stored; begin += 500)
    await caller.call('BatchRegisterAddresses', {
      wallet_id,
      addresses: Array.from({ length: Math.min(500, stored - begin) }, (_, at) =>
        address(begin + at),
      ),
    })
  const name = `tracker:${network}`
  const lease = await acquireLease(db, { name, holder: randomUUID(), ttl_ms: 600_000 })
  const clock = createHastyClock()
  const tools: TrackerTools = {
    ...{ db, network_id, chain, clock, window: 256 },
    lease: { name, epoch: lease!.epoch },
  }
  const settle = async () => {
    while ((await settleBalances(tools, never)) > 0);
  }
  await storeBeginning(tools, chain.canonical()[0]!)
  await settle()
  const next = async (options?: { backlogUntil: number }) => {
    const block = chain.canonical().at(-1)!
    await createMonths(db)([block.time])
    await storeBlocks(tools, [block], options)
  }
  await ensureAssets(db, network_id, [chain.native], new Date())
  await pool.query(
    `insert into balance (wallet_id, organization_id, address, asset_id, asset_type,
       contract_address, balance, as_of_block, create_time, position, update_time)
     select t.wallet_id, t.organization_id, t.address,
       (select asset_id from asset where network_id = $1 and contract_address = ''), $2, '', 1000000, 0,
       now(), 0, now()
     from wallet_address t where t.wallet_id = $3`,
    [network_id, chain.native.asset_type, wallet_id],
  )
  const asked: { at: number; addresses: string[] }[] = []
  const { readBalances } = chain
  let broken: Buffer | undefined
  let error: Error = new ChainUnavailableError('no node answers for this one')
  chain.readBalances = async (queries, ref, signal) => {
    asked.push({ at: clock.now(), addresses: queries.map((one) => one.address.toString('hex')) })
    if (queries.some((one) => broken?.equals(one.address))) throw error
    return await readBalances(queries, ref, signal)
  }
  const counts = { checked: 0, repaired: 0, skipped: 0 }
  const begin = service === 'c' ? startComparing : startReconciling
  const warnings: string[] = []
  const log: Log = {
    ...silentLog,
    warn: (_: unknown, text?: string) => void warnings.push(`${text}`),
  }
  const start = (times: Partial<RoundTimes> = {}) => {
    const rounds = begin({ tools, log, signal: never, counts, firstMs: 10, ...times })
    onTestFinished(rounds.stop)
    return rounds
  }
  const wrong = async () =>
    Number(
      (
        await pool.query(
          'select count(*) from balance where wallet_id = $1 and balance <> 1000000',
          [wallet_id],
        )
      ).rows[0].count,
    )
  const spoil = async () => {
    await pool.query('update balance set balance = balance + 7 where wallet_id = $1', [wallet_id])
  }
  const fail = (number: number | undefined, thrown = error) => {
    error = thrown
    broken = number === undefined ? undefined : account(number)
  }
  const list = async (asset_type: string) =>
    (await caller.call('ListAssets', { wallet_id, asset_type, page_size: 100 })).assets
  return {
    ...bench,
    caller,
    wallet_id,
    clock,
    settle,
    next,
    asked,
    counts,
    warnings,
    start,
    wrong,
    spoil,
    fail,
    list,
  }
}

it('every balance is compared once in a configurable period, evenly, a page at a time', async () => {
  const { clock, asked, start, counts } = await startWorld('c', 'even', { stored: 950 })
  const beginMs = clock.now()
  const rounds = start({ everyMs: day })
  await waitFor('four days', () => clock.now() > beginMs + 4 * day, few)
  await rounds.stop()
  const timesOf = new Map<string, number[]>()
  for (const { at, addresses } of asked)
    for (const address of addresses) timesOf.set(address, [...(timesOf.get(address) ?? []), at])
  expect(timesOf.size).toBe(950)
  for (const times of timesOf.values()) {
    expect(times[0]! - beginMs).toBeLessThanOrEqual(day)
    for (const [index, at] of times.slice(1).entries())
      expect(Math.abs(at - times[index]! - day)).toBeLessThan(day / 100)
  }
  expect(Math.max(...asked.map(({ addresses }) => addresses.length))).toBe(200)
  // Five pages of stored balances, and as many of addresses of which nothing is missing.
  const pauses = asked.slice(1, 5).map(({ at }, index) => at - asked[index]!.at)
  for (const pause of pauses) expect(pause).toBeGreaterThan(day / 11)
  // The last page may have been asked for and not be stored.
  const sum = (pages: typeof asked) => pages.flatMap(({ addresses }) => addresses).length
  expect(counts.checked).toBeGreaterThanOrEqual(sum(asked.slice(0, -1)))
  expect(counts).toMatchObject({ repaired: 0, skipped: 0 })
})

it('a period that was made shorter begins at the restart', async () => {
  const { clock, asked, start, network_id } = await startWorld('c', 'shorter', { stored: 50 })
  const isOver = async () => {
    const { rows } = await pool.query(
      'select 1 from balance_round where network_id = $1 and begin_time > $2',
      [network_id, new Date(clock.now())],
    )
    return rows.length > 0
  }
  clock.holdAt(clock.now() + 299 * day)
  const before = start({ everyMs: 300 * day })
  await waitFor('the next round is to come', isOver, few)
  await before.stop()
  clock.holdAt(clock.now() + 2 * day)
  const [restartMs, count] = [clock.now(), asked.length]
  const after = start({ everyMs: 1_000 * 60 })
  await waitFor('the next round', () => asked.length > count, few)
  await after.stop()
  expect(asked[count]!.at - restartMs).toBeLessThan(1_000 * 61)
})

it('a short period costs a page in 250 ms at the most', async () => {
  const { asked, start } = await startWorld('c', 'short', { stored: 950 })
  const rounds = start({ everyMs: 10 })
  await waitFor('three rounds', () => asked.length >= 15, few)
  await rounds.stop()
  for (const [index, { at }] of asked.slice(1).entries())
    expect(at - asked[index]!.at).toBeGreaterThanOrEqual(250)
})

describe.each(['c', 's'] as const)('a comparison of %s', (service) => {
  it('continues where it was after restarts, and begins no round too early', async () => {
    const world = await startWorld(service, `restarted-${service}`, { stored: 450 })
    const { asked, start, counts, spoil, wrong, clock } = world
    const perPage = service === 'c' ? 200 : 100
    await spoil()
    const beginMs = clock.now()
    for (let page = 1; page <= 5; page++) {
      // Time enough for the wait before the first page of a run.
      clock.holdAt(clock.now() + 20)
      const rounds = start({ everyMs: day })
      await waitFor(
        'the page is stored',
        () => counts.checked >= Math.min(page * perPage, 450),
        few,
      )
      await delay(20)
      await rounds.stop()
    }
    clock.holdAt(Number.POSITIVE_INFINITY)
    expect(asked).toHaveLength(Math.ceil(450 / perPage))
    expect(new Set(asked.flatMap(({ addresses }) => addresses)).size).toBe(450)
    expect(await wrong()).toBe(0)
    expect(counts).toEqual({ checked: 450, repaired: 450, skipped: 0 })
    const before = asked.length
    const rounds = start({ everyMs: day })
    await waitFor('the next round', () => asked.length > before, few)
    await rounds.stop()
    expect(asked[before]!.at - beginMs).toBeGreaterThanOrEqual(day)
  })

  it('skips one that cannot be read, and shows that', async () => {
    const world = await startWorld(service, `failing-${service}`, { stored: 450 })
    const { start, counts, spoil, wrong, fail, clock } = world
    await spoil()
    fail(70)
    const beginMs = clock.now()
    const rounds = start({ everyMs: day })
    await waitFor('all others', async () => (await wrong()) === 1, few)
    await waitFor('the end of the round', () => clock.now() > beginMs + day, few)
    expect(counts).toMatchObject({ repaired: 449 })
    expect(counts.skipped).toBeGreaterThan(0)
    fail(undefined)
    await waitFor('the next round', async () => (await wrong()) === 0, few)
    await rounds.stop()
  })

  it('skips nothing while no node answers', async () => {
    const world = await startWorld(service, `down-${service}`, { stored: 150 })
    const { start, counts, spoil, wrong, chain, clock } = world
    await spoil()
    chain.setMode('down')
    const beginMs = clock.now()
    const rounds = start({ everyMs: day })
    await waitFor('three hours', () => clock.now() > beginMs + day / 8, few)
    expect(counts).toEqual({ checked: 0, repaired: 0, skipped: 0 })
    chain.setMode('up')
    await waitFor('all are compared', async () => (await wrong()) === 0, few)
    await rounds.stop()
  })
})

it('a block that is gone for a moment lets no balance be skipped', async () => {
  const world = await startWorld('c', 'gone', { stored: 450 })
  const { start, asked, counts, spoil, wrong, fail, clock } = world
  await spoil()
  fail(70, new BlockGoneError('it left the chain'))
  clock.holdAt(clock.now() + 5_000)
  const rounds = start({ everyMs: day })
  await waitFor('it was tried twice', () => asked.length >= 2, few)
  fail(undefined)
  clock.holdAt(Number.POSITIVE_INFINITY)
  await waitFor('all are compared', async () => (await wrong()) === 0, few)
  await rounds.stop()
  expect(counts.skipped).toBe(0)
})

it('balances whose states no node has are skipped after ten seconds, and the others are not', async () => {
  const { start, counts, spoil, wrong, fail, clock } = await startWorld('c', 'no-states', {
    stored: 450,
  })
  await spoil()
  fail(70, new BlockGoneError('missing trie node'))
  const beginMs = clock.now()
  const rounds = start({ everyMs: day })
  await waitFor('the end of the round', () => clock.now() > beginMs + day, few)
  await rounds.stop()
  expect(await wrong()).toBeLessThan(20)
  expect(counts.skipped).toBeGreaterThan(0)
})

it('nothing is passed or counted while work waits in a backlog', async () => {
  const world = await startWorld('c', 'open-backlog', { stored: 450 })
  const { chain, account, next, settle, start, counts, asked, clock, wrong, spoil } = world
  await spoil()
  const block = chain.mine([
    {
      movements: [
        { from: account(9_999), to: account(9_998), value: 1n },
        { from: account(9_999), to: account(3), value: 0n },
        { from: account(9_997), to: account(4), value: 5n },
      ],
    },
  ])
  await next({ backlogUntil: block.number })
  const beginMs = clock.now()
  const rounds = start({ everyMs: day })
  await waitFor('an hour', () => clock.now() > beginMs + day / 24, few)
  expect(counts).toEqual({ checked: 0, repaired: 0, skipped: 0 })
  expect(asked).toEqual([])
  expect(world.warnings).toEqual([expect.stringContaining('the tracker is behind')])
  await settle()
  await waitFor('all are compared', async () => (await wrong()) === 1, few)
  await rounds.stop()
  expect(counts.checked).toBeGreaterThanOrEqual(450)
})

describe('balances that are not stored', () => {
  it.each([1, 3, 40])('are added once their block has %i confirmations', async (confirmation) => {
    const world = await startWorld('c', `missing-${confirmation}`, { stored: 1, confirmation })
    const { chain, account, address, caller, wallet_id, next, settle, start, list, counts } = world
    const token = account(5_000)
    chain.addToken(token, 'CONTRACT_TYPE_ERC20')
    await caller.call('RegisterContract', {
      contract_address: address(5_000),
      contract_type: 'CONTRACT_TYPE_ERC20',
    })
    // Before the address is registered, so that no block that is looked into names it.
    const asset = { asset_type: 'ASSET_TYPE_ERC20' as const, contract_address: token, token_id: 0n }
    chain.mine([{ movements: [{ to: account(7), value: 11n, asset }] }])
    await next()
    await settle()
    await caller.call('RegisterAddress', { wallet_id, address: address(7) })
    await caller.call('RegisterAddress', { wallet_id, address: address(8) })
    const rounds = start({ everyMs: day })
    for (let block = 1; block < Math.min(confirmation, 3); block++) {
      chain.mine()
      await next()
      await settle()
    }
    await waitFor('compared', () => counts.repaired >= 3, few)
    if (confirmation > 32) {
      expect(await list('ASSET_TYPE_ERC20')).toEqual([])
      for (let block = 0; block < confirmation; block++) {
        chain.mine()
        await next()
      }
      await settle()
    }
    await waitFor('the token', async () => (await list('ASSET_TYPE_ERC20')).length === 1, few)
    expect(await list('ASSET_TYPE_ERC20')).toMatchObject([{ address: address(7), balance: '11' }])
    expect(await list('ASSET_TYPE_C')).toHaveLength(3)
    const { rows } = await pool.query(
      'select distinct reason from balance_difference where wallet_id = $1',
      [wallet_id],
    )
    expect(rows).toMatchObject([{ reason: expect.stringContaining('no balance was stored') }])
    await rounds.stop()
    // Once: those that are stored, or wait, are no longer looked for.
    expect(counts).toMatchObject({ repaired: 3, skipped: 0 })
  })

  it('are looked for in whole pages again after one failed, also where none is missing', async () => {
    const world = await startWorld('c', 'missing-after-failure', { stored: 450 })
    const { clock, counts, fail, start } = world
    const { sleep } = clock
    let sleeps = 0
    clock.sleep = async (...args) => {
      sleeps++
      await sleep(...args)
    }
    // The last one, so that the pages of missing ones come next.
    fail(449)
    const beginMs = clock.now()
    clock.holdAt(beginMs + day - 1)
    const rounds = start({ everyMs: day })
    await waitFor('it is skipped', () => counts.skipped > 0, few)
    const before = sleeps
    const isOver = async () => {
      const { rows } = await pool.query(
        'select 1 from balance_round where network_id = $1 and begin_time > $2',
        [world.network_id, new Date(beginMs + day - 1)],
      )
      return rows.length > 0
    }
    await waitFor('the next round is to come', isOver, few)
    await rounds.stop()
    // In pages of two, there would be 225.
    expect(sleeps - before).toBeLessThan(20)
  })

  it('are looked for ten tokens of an address at a time, all of them in turn', async () => {
    const world = await startWorld('c', 'missing-many', { stored: 30 })
    const { chain, account, address, caller, asked, start, clock, list } = world
    for (let number = 0; number < 25; number++) {
      const token = account(6_000 + number)
      chain.addToken(token, 'CONTRACT_TYPE_ERC20')
      await caller.call('RegisterContract', {
        contract_address: address(6_000 + number),
        contract_type: 'CONTRACT_TYPE_ERC20',
      })
    }
    const movements = Array.from({ length: 25 }, (_, number) => ({
      ...{ to: account(2), value: BigInt(number + 1) },
      asset: {
        asset_type: 'ASSET_TYPE_ERC20' as const,
        contract_address: account(6_000 + number),
        token_id: 0n,
      },
    }))
    chain.mine([{ movements }])
    // Stored as a block of which nothing is tracked, because tokens without an event name no address.
    const { number, hash, parent_hash, time } = chain.canonical().at(-1)!
    await pool.query(
      `insert into block (network_id, block_number, block_hash, parent_hash, block_time)
       values ($1, $2, $3, $4, $5)`,
      [world.network_id, number, hash, parent_hash, new Date(time)],
    )
    await pool.query(
      'update tracker_cursor set block_number = $2, block_hash = $3 where network_id = $1',
      [world.network_id, number, hash],
    )
    const beginMs = clock.now()
    const rounds = start({ everyMs: day })
    await waitFor('all tokens', async () => (await list('ASSET_TYPE_ERC20')).length === 25, few)
    await rounds.stop()
    expect(clock.now() - beginMs).toBeGreaterThan(2 * day)
    // In a round, 30 stored balances and at most ten tokens of each address.
    const perDay = Map.groupBy(asked, ({ at }) => Math.floor((at - beginMs) / day))
    for (const pages of perDay.values())
      expect(pages.flatMap(({ addresses }) => addresses).length).toBeLessThanOrEqual(30 * 11 + 30)
    for (const { addresses } of asked) expect(addresses.length).toBeLessThanOrEqual(200)
  })
})
