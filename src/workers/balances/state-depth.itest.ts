import { describe, expect, it } from 'vitest'
import { isBalanceDue } from '../../../test/helpers/balance-due.ts'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { Caller, WalletBench } from '../../../test/helpers/wallets.ts'
import { BlockGoneError, ChainUnavailableError } from '../../chains/chain.ts'
import { systemClock } from '../../lib/clock.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'

const database = await freshDatabase()
const { startBench, settled } = createTrackedBenches(database)

const registerWallet = async (
  { address }: WalletBench,
  caller: Caller,
  { number = 1, confirmation = 1 } = {},
): Promise<string> => {
  const request = { name: 'w', address: address(number), confirmation }
  return (await caller.call('RegisterWallet', request)).wallet_id
}

const balanceOf = async (caller: Caller, wallet_id: string): Promise<string | undefined> =>
  (await caller.call('ListAssets', { wallet_id, asset_type: 'ASSET_TYPE_C' })).assets[0]?.balance

describe('a wallet with more confirmations than nodes have states', () => {
  /** From now on the nodes have the states of the newest blocks only. */
  const forget = ({ chain }: WalletBench, states: number) => {
    const { readBalances } = chain
    const asked = new Set<number>()
    chain.readBalances = async (queries, at, signal) => {
      asked.add(at.number)
      const { number } = await chain.head(signal)
      if (at.number <= number - states) throw new BlockGoneError(`no state of block ${at.number}`)
      return await readBalances(queries, at, signal)
    }
    return asked
  }

  it('gets its balance when the block is confirmed, and not before', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    forget(bench, 72)
    const wallet_id = await registerWallet(bench, caller, { confirmation: 100 })
    start()
    await settled(bench)
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await settled(bench)
    for (let block = 0; block < 98; block++) chain.mine()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBeUndefined()
    chain.mine()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
  })

  it('gets nothing of blocks that left the chain', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    forget(bench, 72)
    const wallet_id = await registerWallet(bench, caller, { confirmation: 40 })
    start()
    await settled(bench)
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await settled(bench)
    chain.mine([{ movements: [{ to: account(1), value: 6n }] }])
    await settled(bench)
    chain.reorganize(1, [[], []])
    await settled(bench)
    for (let block = 0; block < 50; block++) chain.mine()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
  })

  it('gets its balance though a second, deeper reorganization comes before it is read again', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account, network_id } = bench
    const { readBalances } = chain
    let isReadable = true
    chain.readBalances = async (...asked) => {
      if (!isReadable) throw new ChainUnavailableError('no node answers')
      return await readBalances(...asked)
    }
    const stored = () =>
      waitFor('the head is stored', async () => {
        const cursor = await findCursor(database.db, network_id)
        return cursor?.block_hash.equals(chain.canonical().at(-1)!.hash) === true
      })
    const wallet_id = await registerWallet(bench, caller, { confirmation: 40 })
    start()
    await settled(bench)
    isReadable = false
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    for (let block = 0; block < 4; block++) chain.mine()
    await stored()
    isReadable = true
    // Read at the newest block, and kept until that is confirmed.
    await settled(bench)
    isReadable = false
    chain.reorganize(1, [[], []])
    await stored()
    chain.reorganize(4, [[], [], [], [], []])
    await stored()
    isReadable = true
    await settled(bench)
    for (let block = 0; block < 50; block++) chain.mine()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
  })

  it('is refreshed truthfully: with what the confirmed block says once it can be known', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    forget(bench, 10)
    start()
    await settled(bench)
    for (let block = 0; block < 60; block++) chain.mine()
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await settled(bench)
    const wallet_id = await registerWallet(bench, caller, { confirmation: 40 })
    await caller.call('RefreshAssetBalances', { wallet_id, asset_type: 'ASSET_TYPE_C' })
    expect(await balanceOf(caller, wallet_id)).toBeUndefined()
    for (let block = 0; block < 39; block++) chain.mine()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
    const { rows } = await database.pool.query("select 1 from job where kind = 'refresh_balances'")
    expect(rows).toEqual([])
  })

  it('is read a bounded number of times', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    await registerWallet(bench, caller, { confirmation: 12_800 })
    start()
    await settled(bench)
    for (let block = 0; block < 300; block++)
      chain.mine([{ movements: [{ to: account(1), value: 1n }] }])
    await settled(bench)
    const { rows } = await database.pool.query(
      'select count(*)::int from balance_pending where network_id = $1',
      [bench.network_id],
    )
    expect(rows[0].count).toBeLessThanOrEqual(3)
  })

  it('waits for the confirmation that it is given later', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const wallet_id = await registerWallet(bench, caller, { confirmation: 100 })
    start()
    await settled(bench)
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await settled(bench)
    await caller.call('UpdateConfirmation', { wallet_id, confirmation: 2 })
    chain.mine()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
  })
})

describe('a block that a node lacks for a moment', () => {
  it('is read again soon, and not many blocks later', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const wallet_id = await registerWallet(bench, caller, { confirmation: 3 })
    start()
    await settled(bench)
    let failures = 3
    const { readBalances } = chain
    chain.readBalances = async (queries, at, signal) => {
      if (failures-- > 0) throw new BlockGoneError('header not found')
      return await readBalances(queries, at, signal)
    }
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    chain.mine()
    chain.mine()
    await settled(bench)
    expect(failures).toBeLessThan(0)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
  })

  it('is read at the next one where its state is missing for long, and not many blocks later', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const wallet_id = await registerWallet(bench, caller)
    let shift = 0
    start({ clock: { ...systemClock, now: () => systemClock.now() + shift } })
    await settled(bench)
    let failures = 0
    const { readBalances } = chain
    chain.readBalances = async () => {
      failures++
      throw new BlockGoneError('missing trie node')
    }
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await waitFor('it fails', async () => failures > 0)
    shift = 60_000
    const before = failures
    await waitFor('it fails again', async () => failures > before)
    await waitFor(
      'the balance waits',
      async () =>
        !(await isBalanceDue(database.db, bench.network_id, chain.canonical().length - 1)),
    )
    chain.readBalances = readBalances
    chain.mine()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
  })
})
