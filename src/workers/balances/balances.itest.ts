import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { Caller, WalletBench } from '../../../test/helpers/wallets.ts'
import { ChainUnavailableError } from '../../chains/chain.ts'
import { isReopening } from '../../storage/balances/reopening.ts'
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

/** Lets the next reading of a balance hang after the node has answered, until it is let go. */
const holdReading = ({ chain }: WalletBench) => {
  const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { readBalances } = chain
  chain.readBalances = async (...question) => {
    chain.readBalances = readBalances
    const answer = await readBalances(...question)
    asked.resolve()
    await gate.promise
    return answer
  }
  return { asked: asked.promise, letGo: gate.resolve }
}

describe('a balance that no node can read', () => {
  it('holds up no other one, and is read as soon as it can be', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const broken = await registerWallet(bench, caller, { number: 1 })
    const sound = await registerWallet(bench, caller, { number: 2 })
    const { readBalances } = chain
    chain.readBalances = async (queries, ...rest) => {
      const readings = await readBalances(queries, ...rest)
      return readings.map((reading, at) =>
        queries[at]!.address.equals(account(1)) ? { ...reading, balance: null } : reading,
      )
    }
    start()
    await settled(bench).catch(() => {})
    for (const value of [5n, 6n]) {
      chain.mine([
        {
          movements: [
            { to: account(1), value },
            { to: account(2), value },
          ],
        },
      ])
      await waitFor('the sound one is read', async () => {
        const shown = await balanceOf(caller, sound)
        return shown === (value === 5n ? '1000005' : '1000011')
      })
    }
    const shown = async () =>
      (await caller.call('ListAssets', { wallet_id: broken, asset_type: 'ASSET_TYPE_C' })).assets
    expect(await shown()).toMatchObject([{ balance: '0', is_unreadable: true }])
    chain.readBalances = readBalances
    // The first pauses are short: a contract may only have been registered before it was confirmed.
    for (let block = 0; block < 12; block++) chain.mine()
    await waitFor('the other one too', async () => (await balanceOf(caller, broken)) === '1000011')
    expect(await shown()).toMatchObject([{ is_unreadable: false }])
  })

  it('holds up no other one when it is to be read again after a gap as well', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    await registerWallet(bench, caller, { number: 1, confirmation: 2 })
    const sound = await registerWallet(bench, caller, { number: 2 })
    const { readBalances } = chain
    chain.readBalances = async (queries, ...rest) => {
      const readings = await readBalances(queries, ...rest)
      return readings.map((reading, at) =>
        queries[at]!.address.equals(account(1)) ? { ...reading, balance: null } : reading,
      )
    }
    start()
    await settled(bench)
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    chain.mine()
    await settled(bench)
    // What a gap reopens may be read before it is confirmed; the work of the block waits still.
    await database.pool.query(
      `insert into balance_change (wallet_id, address, asset_id, block_number, organization_id,
         network_id, due_block, ahead)
       select wallet_id, address, asset_id, block_number + 1, organization_id, network_id,
         due_block, true
       from balance_change where network_id = $1 and address = $2
       order by block_number desc limit 1`,
      [bench.network_id, account(1)],
    )
    for (let block = 0; block < 40; block++) chain.mine()
    chain.mine([{ movements: [{ to: account(2), value: 7n }] }])
    chain.mine()
    await waitFor('the sound one', async () => (await balanceOf(caller, sound)) === '1000007')
  })
})

describe('a block that no node has any more', () => {
  it('delays its own balances only, until another one can be read', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const slow = await registerWallet(bench, caller, { number: 1, confirmation: 5 })
    const quick = await registerWallet(bench, caller, { number: 2 })
    const balance = (wallet_id: string) => balanceOf(caller, wallet_id)
    const first = start()
    await settled(bench)
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await settled(bench)
    await first.stop()
    for (let block = 2; block < 18; block++) chain.mine()
    chain.mine([{ movements: [{ to: account(2), value: 7n }] }])
    chain.mine()
    // What block 1 made is due and would be read five blocks below the head, which no node has.
    chain.prune(18)
    start()
    await waitFor('the quick one is read', async () => (await balance(quick)) === '1000007')
    expect(await balance(slow)).toBeUndefined()
    for (let block = 0; block < 40; block++) chain.mine()
    await settled(bench)
    expect(await balance(slow)).toBe('1000005')
  })
})

describe('an address that is removed and registered again while its balance is read', () => {
  /** A tracked wallet of which the next reading is held. */
  const startHeld = async () => {
    const { bench, caller, start } = await startBench('c')
    const wallet_id = await registerWallet(bench, caller)
    start()
    await settled(bench)
    return { bench, caller, wallet_id, ...holdReading(bench) }
  }

  /** Stores a block in which the address is not tracked, then continues the read. */
  const replace = async (held: Awaited<ReturnType<typeof startHeld>>) => {
    const { bench, caller, wallet_id, asked, letGo } = held
    const { chain, account, address } = bench
    await asked
    await caller.call('RemoveAddress', { wallet_id, address: address(1) })
    const { number } = chain.mine([{ movements: [{ to: account(1), value: 6n }] }])
    await waitFor('the block is stored', async () => (await cursorOf(bench)) === number)
    await caller.call('RegisterAddress', { wallet_id, address: address(1) })
    letGo()
  }

  it('gets no value that was read for the block before', async () => {
    const held = await startHeld()
    const { bench, caller, wallet_id } = held
    const { chain, account } = bench
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await replace(held)
    for (let block = 0; block < 2; block++) {
      chain.mine()
      await settled(bench)
    }
    expect(await balanceOf(caller, wallet_id)).toBeUndefined()
  })

  it('is read once more when it was requested', async () => {
    const held = await startHeld()
    const { bench, caller, wallet_id } = held
    const refreshed = caller.call('RefreshAssetBalances', { wallet_id, asset_type: 'ASSET_TYPE_C' })
    await replace(held)
    await refreshed
    bench.chain.mine()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000006')
  })
})

const cursorOf = async ({ network_id }: WalletBench): Promise<number | undefined> =>
  (await findCursor(database.db, network_id))?.block_number

describe('a node that mixes up blocks while its chain reorganizes', () => {
  /** The node answers for a block with what another one says. */
  const confuse = (bench: WalletBench, block_number: number, value: bigint) => {
    const { readBalances } = bench.chain
    bench.chain.readBalances = async (queries, at, signal) => {
      const answer = await readBalances(queries, at, signal)
      if (at.number !== block_number) return answer
      return answer.map((reading) => ({ ...reading, balance: value }))
    }
    return () => {
      bench.chain.readBalances = readBalances
    }
  }

  it('is asked again about the block that the branches have in common', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const wallet_id = await registerWallet(bench, caller)
    start()
    await settled(bench)
    const { number } = chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    const clear = confuse(bench, number, 999n)
    await settled(bench)
    chain.mine()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('999')
    clear()
    chain.reorganize(1, [[], []])
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
  })

  it('is asked again when blocks were taken back while it answered', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const wallet_id = await registerWallet(bench, caller, { confirmation: 2 })
    start()
    await settled(bench)
    const { number } = chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await settled(bench)
    const clear = confuse(bench, number, 999n)
    const { asked, letGo } = holdReading(bench)
    chain.mine()
    await asked
    clear()
    const { hash } = chain.reorganize(1, [[], []])
    await waitFor('the other branch is stored', async () => {
      const cursor = await findCursor(database.db, bench.network_id)
      return cursor?.block_hash.equals(hash) === true
    })
    letGo()
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
  })
})

describe('a balance that was read before the first block', () => {
  it('is read again when tracking begins later', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const wallet_id = await registerWallet(bench, caller)
    await caller.call('RefreshAssetBalances', { wallet_id, asset_type: 'ASSET_TYPE_C' })
    expect(await balanceOf(caller, wallet_id)).toBe('1000000')
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    start()
    await settled(bench)
    await waitFor('it is read', async () => (await balanceOf(caller, wallet_id)) === '1000005')
  })

  it('is the only reason to read later ones twice when tracking begins', async () => {
    const { bench, caller, start } = await startBench('c')
    await registerWallet(bench, caller, { confirmation: 10 })
    start()
    await settled(bench)
    expect(await isReopening(database.db, bench.network_id)).toBe(false)
  })
})

describe('UpdateConfirmation', () => {
  it('does not delay balances that a reorganization invalidated', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const wallet_id = await registerWallet(bench, caller)
    start()
    await settled(bench)
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await settled(bench)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
    const { readBalances } = chain
    chain.readBalances = async () => {
      throw new ChainUnavailableError('not now')
    }
    const { hash } = chain.reorganize(1, [[], []])
    await waitFor('the other branch is stored', async () => {
      const cursor = await findCursor(database.db, bench.network_id)
      return cursor?.block_hash.equals(hash) === true
    })
    await caller.call('UpdateConfirmation', { wallet_id, confirmation: 1_000 })
    chain.readBalances = readBalances
    await waitFor('it is read', async () => (await balanceOf(caller, wallet_id)) === '1000000')
  })
})

describe('assets that are read apart', () => {
  it('come after the others and few at a time, and are all read in the end', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const slow = await registerWallet(bench, caller, { number: 1 })
    const addresses = Array.from({ length: 120 }, (_, index) => bench.address(index + 100))
    await caller.call('BatchRegisterAddresses', { wallet_id: slow, addresses })
    const quick = await registerWallet(bench, caller, { number: 2 })
    chain.addToken(account(77), 'CONTRACT_TYPE_ERC20')
    await caller.call('RegisterContract', {
      contract_address: bench.address(77),
      contract_type: 'CONTRACT_TYPE_ERC20',
    })
    chain.isReadApart = ({ contract_address }) => contract_address.length > 0
    const { readBalances } = chain
    const sizes: number[] = []
    chain.readBalances = async (queries, ...rest) => {
      if (queries[0]!.asset.contract_address.length > 0) {
        // The other one is there already.
        expect(await balanceOf(caller, quick)).toBe('1000005')
        sizes.push(queries.length)
      }
      return await readBalances(queries, ...rest)
    }
    start()
    await settled(bench)
    const asset = {
      asset_type: 'ASSET_TYPE_ERC20' as const,
      contract_address: account(77),
      token_id: 0n,
    }
    const movements = Array.from({ length: 120 }, (_, index) => ({
      to: account(index + 100),
      value: 3n,
      asset,
    }))
    chain.mine([{ movements: [...movements, { to: account(2), value: 5n }] }])
    for (let block = 0; block < 4; block++) {
      await settled(bench)
      chain.mine()
    }
    await settled(bench)
    expect(Math.max(...sizes)).toBe(50)
    const request = { wallet_id: slow, asset_type: 'ASSET_TYPE_ERC20', page_size: 200 }
    const { assets } = await caller.call('ListAssets', { ...request, page_size: 100 })
    expect(assets).toHaveLength(100)
    expect(assets.every(({ balance }: { balance: string }) => balance === '3')).toBe(true)
  })
})

describe('work that is due by the confirmation that its wallet had', () => {
  it.each([
    ['is read once the block has those of now', 3, 10],
    ['is kept until the block has those of now, where no node has its state by then', 3, 40],
  ])('%s', async (_, before, confirmation) => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account } = bench
    const wallet_id = await registerWallet(bench, caller, { confirmation: before })
    start()
    const mine = async (count: number) => {
      for (let block = 0; block < count; block++) chain.mine()
      await settled(bench)
    }
    await settled(bench)
    chain.mine([{ movements: [{ to: account(1), value: 5n }] }])
    await mine(before)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
    chain.mine([{ movements: [{ to: account(1), value: 6n }] }])
    await mine(0)
    // The first page of UpdateConfirmation, of which the page with this work is missing.
    await database.pool.query(
      'update wallet set confirmation = $2, confirmed_block = $3 where wallet_id = $1',
      [wallet_id, confirmation, chain.canonical().at(-1)!.number - before + 1],
    )
    await mine(before - 1)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
    await mine(confirmation - before - 1)
    expect(await balanceOf(caller, wallet_id)).toBe('1000005')
    // Read at the newest block, it waits for the confirmations of that one.
    await mine(confirmation > 32 ? before : 1)
    expect(await balanceOf(caller, wallet_id)).toBe('1000011')
  })
})
