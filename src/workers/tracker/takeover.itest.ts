import { randomUUID } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches, listAll } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import { acquireLease, LeaseLostError } from '../../storage/tracking/leases.ts'
import { startImporter } from '../jobs/importer.ts'
import { storeBeginning } from './store.ts'

const database = await freshDatabase()
const { db } = database
const { startBench, settled } = createTrackedBenches(database)

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

  it('refuse writes of a lease that another process holds now', async () => {
    const { bench } = await startBench('c')
    const { chain, network_id } = bench
    const name = `fencing-${network_id}`
    const claim = (holder: string, ttl_ms: number) => acquireLease(db, { name, holder, ttl_ms })
    const first = await claim(randomUUID(), 1)
    await waitFor('it expires', async () => (await claim(randomUUID(), 60_000)) !== undefined)
    const lease = { name, epoch: first!.epoch }
    const tools = { db, clock: systemClock, network_id, chain, lease, window: 64 }
    await expect(storeBeginning(tools, chain.canonical()[0]!)).rejects.toThrow(LeaseLostError)
    expect(await findCursor(db, network_id)).toBeUndefined()
  })

  it('read what an operation has promised while no node answered', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, network_id, address } = bench
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
      network_id,
      chain,
      pollMs: 20,
    })
    onTestFinished(importer.stop)
    await waitFor('it is read', async () => (await list()).length === 1)
  })
})
