import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches, listAll } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { systemClock } from '../../lib/clock.ts'
import { planRewind, RewindError, runRewind } from './rewind.ts'

const database = await freshDatabase()
const { db, pool } = database
const { startBench, settled, addWebhook, notified } = createTrackedBenches(database)
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
