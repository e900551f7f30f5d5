import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { startTracker } from '../../../src/workers/tracker/tracker.ts'
import { freshDatabase } from '../../helpers/database.ts'
import { oneChain } from '../../helpers/one-chain.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { createWalletBench } from '../../helpers/wallets.ts'
import { startHarness } from './harness.ts'

it('finds a balance that changed without an event, reports and corrects it', async () => {
  const { db, pool } = await freshDatabase()
  const node = await startHarness()
  onTestFinished(node.stop)
  node.mine(2)
  const chain = node.openChain()
  onTestFinished(chain.stop)
  const bench = await createWalletBench(db, 'p')
  bench.installation.chains = oneChain(bench.network_id, () => chain)
  const caller = await bench.createCaller()
  const address = node.to(50).value
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address })
  const alarms: object[] = []
  const tracker = startTracker({
    ...{
      db,
      chain,
      network_id: bench.network_id,
      name: { chain: 'p', network: 'mainnet' },
      clock: systemClock,
    },
    log: { ...silentLog, error: (fields) => void alarms.push(fields) },
    holder: randomUUID(),
    reconcile: { firstMs: 10, everyMs: 10 },
  })
  onTestFinished(tracker.stop)
  const balance = async () => {
    const request = { wallet_id, asset_type: 'ASSET_TYPE_P' }
    return (await caller.call('ListAssets', request)).assets[0]?.balance
  }
  await waitFor('the beginning', () => tracker.status().block_number === 2)
  await node.fund(address, 5n * 10n ** 12n)
  await waitFor('the balance', async () => (await balance()) === '5000000000000')
  const compared = tracker.status().reconciliation!.checked + 3
  await waitFor('compared', () => tracker.status().reconciliation!.checked >= compared)
  expect(tracker.status().reconciliation!.repaired).toBe(0)

  await pool.query('update balance set balance = balance - 7')
  await waitFor('repaired', async () => (await balance()) === '5000000000000')
  await waitFor('counted', () => tracker.status().reconciliation!.repaired === 1)
  expect(alarms).toMatchObject([{ address, expected: '4999999999993', found: '5000000000000' }])
})
