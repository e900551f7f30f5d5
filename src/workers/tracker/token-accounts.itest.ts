import { describe, expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import {
  createTrackedBenches,
  listAll,
  type TrackedBench,
} from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { startImporter } from '../jobs/importer.ts'

const database = await freshDatabase()
const { db, pool } = database
const { addWebhook, notified, startBench, settled } = createTrackedBenches(database)

describe('a token whose accounts are found by a job', () => {
  const asset_type = 'ASSET_TYPE_T'
  const token_address = `0:${'5'.repeat(64)}`
  const startJettons = async () => {
    const started = await startBench('t')
    const parsed = started.bench.family.parseToken!(token_address)
    if (!parsed.ok) throw new Error(parsed.detail)
    started.bench.chain.addToken(parsed.bytes, 'token')
    return started
  }
  const covered = async (network_id: number): Promise<number> => {
    const { rows } = await pool.query(
      'select count(*)::int as count from token_import where network_id = $1',
      [network_id],
    )
    return rows[0].count
  }
  const startImports = ({ bench }: TrackedBench) => {
    const importer = startImporter({
      ...{ db, clock: systemClock, log: silentLog },
      ...{ network_id: bench.network_id, chain: bench.chain, pollMs: 20 },
    })
    onTestFinished(importer.stop)
  }

  it('is tracked at every address, in whichever order they and the token are stored', async () => {
    const started = await startJettons()
    const { bench, caller } = started
    const callers = [caller, ...(await Promise.all([1, 2, 3, 4].map(() => bench.createCaller())))]
    await Promise.all(
      callers.map(async ({ call }) => {
        const { wallet_id } = await call('RegisterWallet', { name: 'w' })
        const register = (number: number) =>
          call('RegisterAddress', { wallet_id, address: bench.address(number) })
        await Promise.all([
          ...[1, 2, 3, 4, 5].map(register),
          call('ImportAsset', { asset_type, token_address }),
          ...[6, 7, 8, 9, 10].map(register),
        ])
      }),
    )
    startImports(started)
    await waitFor('all are tracked', async () => (await covered(bench.network_id)) === 50)
  })

  it('is found when the nodes answer again, and registering does not wait for them', async () => {
    const started = await startJettons()
    const { bench, caller } = started
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
    await caller.call('ImportAsset', { wallet_id, asset_type, token_address })
    bench.chain.setMode('down')
    await caller.call('RegisterAddress', { wallet_id, address: bench.address(1) })
    expect(await covered(bench.network_id)).toBe(0)
    bench.chain.setMode('up')
    startImports(started)
    await waitFor('it is tracked', async () => (await covered(bench.network_id)) === 1)
  })

  it('lists and notifies what arrives before its accounts are found', async () => {
    const started = await startJettons()
    const { bench, caller, start } = started
    const { chain, account, address } = bench
    const parsed = bench.family.parseToken!(token_address)
    if (!parsed.ok) throw new Error(parsed.detail)
    const token = { asset_type, contract_address: parsed.bytes, token_id: 0n } as const
    const pay = (number: number, value: bigint) =>
      chain.mine([{ movements: [{ to: account(number), value, asset: token }] }])
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(9) })
    await caller.call('ImportAsset', { wallet_id, asset_type, token_address })
    const webhook_id = await addWebhook(bench, caller, 1)
    start({ refill: { everyMs: 20 } })
    await settled(bench)
    const { tokens } = chain
    const { findAccounts } = tokens!
    tokens!.findAccounts = async () => {
      throw new Error('not now')
    }
    // Before it is registered: never listed.
    pay(1, 1n)
    await settled(bench)
    await caller.call('RegisterAddress', { wallet_id, address: address(1) })
    pay(1, 2n)
    pay(9, 3n)
    await settled(bench)
    // Another one whose token is imported by name counts from then on only.
    const stranger = await bench.createCaller()
    const other = await stranger.call('RegisterWallet', { name: 'o', address: address(1) })
    pay(1, 4n)
    await settled(bench)
    expect(await listAll(caller, { address: address(1) })).toEqual([])
    tokens!.findAccounts = findAccounts!
    startImports(started)
    await waitFor('all are listed', async () => {
      const listed = await listAll(caller, { address: address(1) })
      return listed.length === 2
    })
    const listed = await listAll(caller, { wallet_id })
    expect(listed.map(({ to, value }) => [to, value]).toSorted()).toEqual(
      [
        [address(1), '2'],
        [address(1), '4'],
        [address(9), '3'],
      ].toSorted(),
    )
    expect(await listAll(stranger, { wallet_id: other.wallet_id })).toEqual([])
    pay(1, 5n)
    await settled(bench)
    expect(await listAll(caller, { address: address(1) })).toHaveLength(3)
    const bodies = (await notified(webhook_id)).map(({ data }) => data)
    expect(bodies.map(({ backfilled, transfers }) => [transfers[0].value, backfilled])).toEqual([
      ['3', undefined],
      ['2', true],
      ['4', true],
      ['5', undefined],
    ])
    const { assets } = await caller.call('ListAssets', {
      ...{ address: address(1), asset_type, token_address },
    })
    expect(assets).toMatchObject([{ balance: '12' }])
  })

  it('is asked for again where it names no account at first', async () => {
    const started = await startJettons()
    const { bench, caller } = started
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
    await caller.call('ImportAsset', { wallet_id, asset_type, token_address })
    const { tokens } = bench.chain
    const { findAccounts } = tokens!
    let times = 1
    tokens!.findAccounts = async (asset, owners, signal) => {
      const found = await findAccounts!(asset, owners, signal)
      return times-- > 0 ? found.map((one, at) => (at === 0 ? undefined : one)) : found
    }
    const addresses = [1, 2, 3].map(bench.address)
    await caller.call('BatchRegisterAddresses', { wallet_id, addresses })
    expect(await covered(bench.network_id)).toBe(2)
    startImports(started)
    await waitFor('all are tracked', async () => (await covered(bench.network_id)) === 3)
  })
})
