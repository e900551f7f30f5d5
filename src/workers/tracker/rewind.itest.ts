import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches, listAll } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { systemClock } from '../../lib/clock.ts'
import { planRewind, RewindError, runRewind } from './rewind.ts'

const database = await freshDatabase()
const { db, pool } = database
const { startBench, settled, addWebhook, notified } = createTrackedBenches(database)
const short = { timeoutMs: 10_000 }
const { signal } = new AbortController()

it('a reorganization deeper than the stored blocks is rewound manually, and tracking continues', async () => {
  const { bench, caller, start } = await startBench('c')
  const { chain, network_id, account, address } = bench
  const { wallet_id } = await caller.call('RegisterWallet', {
    name: 'w',
    address: address(1),
    confirmation: 1,
  })
  const webhook_id = await addWebhook(bench, caller, 1)
  const pay = (value: bigint) => ({ movements: [{ from: account(9), to: account(1), value }] })
  const values = async () =>
    (await listAll(caller, { wallet_id })).map(({ value }) => Number(value))
  const tracker = start({ window: 1 })
  await settled(bench)
  for (let value = 1n; value <= 8n; value++) chain.mine([pay(value)])
  await settled(bench)
  // As if they had been trimmed.
  await pool.query('delete from block where network_id = $1 and block_number < 7', [network_id])
  chain.reorganize(
    5,
    Array.from({ length: 6 }, (_, at) => [pay(100n + BigInt(at))]),
  )
  await waitFor('it fails', () => tracker.status().state === 'failing')
  expect(tracker.status().last_error).toContain('see portolan rewind')
  const { network_id: of } = bench
  const between = { db, clock: systemClock, network_id: of, chain, to: 7, signal }
  await expect(planRewind(between)).rejects.toThrow('choose a lower one')
  const options = { db, clock: systemClock, network_id, chain, to: 3, signal }
  const plan = await planRewind(options)
  expect(plan).toMatchObject({
    cursor: { number: 8 },
    to: { number: 3 },
    transfers: 5,
    organizations: 1,
    notified: 5,
    waiting: 0,
  })
  expect(await values()).toEqual([8, 7, 6, 5, 4, 3, 2, 1])
  await runRewind(options, plan)
  await settled(bench)
  expect(await values()).toEqual([105, 104, 103, 102, 101, 100, 3, 2, 1])
  const states = (await notified(webhook_id)).map(({ data }) => data.transfers[0].transfer_state)
  expect(states.filter((state) => state === 'TRANSFER_STATE_REORGED')).toHaveLength(5)
  expect(states).toHaveLength(8 + 5 + 6)
  await expect(planRewind({ ...options, to: 50 })).rejects.toThrow(RewindError)
  await expect(planRewind({ ...options, to: 9 })).rejects.toThrow('not before the last block')
})

it('a reorganization below the block of a rewind leaves no transfer of the left branch unnoticed', async () => {
  const { bench, caller, start } = await startBench('c')
  const { chain, network_id, account, address } = bench
  const { wallet_id } = await caller.call('RegisterWallet', {
    ...{ name: 'w', address: address(1), confirmation: 1 },
  })
  const pay = (value: bigint) => ({ movements: [{ from: account(9), to: account(1), value }] })
  const values = async () =>
    (await listAll(caller, { wallet_id })).map(({ value }) => Number(value))
  const tracker = start()
  await settled(bench)
  for (let value = 1n; value <= 8n; value++) chain.mine([pay(value)])
  await settled(bench)
  await pool.query('delete from block where network_id = $1 and block_number < 7', [network_id])
  const rewindTo = async (to: number) => {
    const options = { db, clock: systemClock, network_id, chain, to, signal }
    await runRewind(options, await planRewind(options))
  }
  await rewindTo(5)
  chain.mine([pay(9n)])
  await settled(bench)
  expect(await values()).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1])
  chain.reorganize(
    7,
    Array.from({ length: 8 }, (_, at) => [pay(100n + BigInt(at))]),
  )
  await waitFor('it fails', () => tracker.status().state === 'failing', short)
  expect(tracker.status().last_error).toContain('see portolan rewind')
  await rewindTo(2)
  await settled(bench)
  expect(await values()).toEqual([107, 106, 105, 104, 103, 102, 101, 100, 2, 1])
})

it.each(['c', 's'] as const)(
  'balances that were read at blocks which are not stored any more are read again after a rewind (%s)',
  async (service) => {
    const { bench, caller, start } = await startBench(service)
    const { chain, network_id, account, address } = bench
    const wallets: { wallet_id: string; confirmation: number; number: number }[] = []
    for (const [confirmation, number] of [
      [1, 1],
      [3, 2],
      [40, 3],
    ] as const) {
      const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation })
      await caller.call('RegisterAddress', { wallet_id, address: address(number) })
      wallets.push({ wallet_id, confirmation, number })
    }
    const pay = (number: number, value: bigint) => ({
      movements: [{ from: account(9), to: account(number), value }],
    })
    const all = (value: bigint) => wallets.map(({ number }) => pay(number, value))
    const tracker = start({ window: 1 })
    await settled(bench)
    // The only payments of the branch that is left; each is confirmed and read there.
    for (const value of [1n, 2n]) {
      chain.mine(all(value))
      await settled(bench)
    }
    for (let block = 2; block < 50; block++) chain.mine()
    await settled(bench)
    for (const table of ['block', 'balance_reading'])
      await pool.query(`delete from ${table} where network_id = $1 and block_number < 49`, [
        network_id,
      ])
    const listed = async () =>
      await Promise.all(
        wallets.map(async ({ wallet_id }) => {
          const request = { wallet_id, asset_type: `ASSET_TYPE_${service.toUpperCase()}` }
          return (await caller.call('ListAssets', request)).assets[0]?.balance
        }),
      )
    await waitFor(
      'all are confirmed',
      async () => (await listed()).every((balance) => balance === '1000003'),
      short,
    )
    await tracker.stop()
    chain.reorganize(49, [all(5n)])
    const options = { db, clock: systemClock, network_id, chain, to: 1, signal }
    await runRewind(options, await planRewind(options))
    const claims = async () =>
      (
        await pool.query(
          `select max(b.as_of_block)::int4 as newest from balance b join wallet w using (wallet_id)
           where w.network_id = $1`,
          [network_id],
        )
      ).rows[0].newest
    // The transaction that goes back makes no work for each balance.
    const { rows: work } = await pool.query('select from balance_change where network_id = $1', [
      network_id,
    ])
    expect(work).toEqual([])
    start({ window: 1 })
    await waitFor('no balance is of a block that is gone', async () => (await claims()) <= 2, short)
    for (let block = 2; block < 45; block++) chain.mine()
    await settled(bench)
    expect(await listed()).toEqual(wallets.map(() => '1000006'))
    expect(await claims()).toBeLessThanOrEqual(45)
  },
)
