import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { insertGap, listOpenGaps } from '../../storage/tracking/gaps.ts'
import { addReread, listRereads } from '../../storage/tracking/rereads.ts'
import { createReread } from './reread.ts'

const { db, pool } = await freshDatabase()
const { startBench, settled } = createTrackedBenches({ db, pool })

/** A chain of 100 blocks that are tracked. */
const startBlocks = async () => {
  const started = await startBench('t')
  const { bench, caller, start } = started
  await caller.call('RegisterWallet', { name: 'w', address: bench.address(1) })
  const tracker = start()
  await settled(bench)
  for (let count = 0; count < 100; count++) bench.chain.mine([])
  await settled(bench)
  const add = (from: number, to: number) =>
    db.transaction().execute(async (trx) => {
      await addReread(trx, { network_id: bench.network_id, from, to, now: new Date() })
    })
  return { ...started, tracker, add }
}

it('blocks are read again although a job adds the first ones again with each of its pages', async () => {
  const { bench, tracker, add } = await startBlocks()
  await tracker.stop()
  const { chain, network_id } = bench
  const read = new Set<number>()
  const { block } = chain
  chain.block = async (number, ...rest) => {
    read.add(number)
    return await block(number, ...rest)
  }
  const times = { blocks: 16, firstPauseMs: 1, lastPauseMs: 1 }
  const tools = { db, clock: systemClock, network_id, chain }
  const reread = createReread(tools, { ...times, log: silentLog })
  const { signal } = new AbortController()
  // Those of another organization, added once.
  await add(70, 90)
  for (let page = 0; page < 7; page++) {
    await add(1, 50)
    expect(await reread(signal)).toBe(true)
  }
  expect([...read].toSorted((a, b) => a - b)).toEqual([
    ...Array.from({ length: 50 }, (_, at) => at + 1),
    ...Array.from({ length: 21 }, (_, at) => at + 70),
  ])
  // Round: what was added again in the meantime is read again, up to its end.
  for (let step = 0; step < 4; step++) await reread(signal)
  expect(await listRereads(db, network_id)).toEqual([])
})

it('gaps are filled while there are always blocks to read again', async () => {
  const { bench, start, tracker, add } = await startBlocks()
  await tracker.stop()
  const { network_id, chain } = bench
  const reason = 'unreadable'
  const gap = { from_block: 60, to_block: 60, reason, network_id, create_time: new Date(0) }
  await db.transaction().execute((trx) => insertGap(trx, gap))
  await add(1, 50)
  const { block } = chain
  chain.block = async (number, ...rest) => {
    // As a job does whose pages never end.
    if (number <= 50) await add(1, 50)
    return await block(number, ...rest)
  }
  start({ refill: { everyMs: 20 } })
  await waitFor('the gap is filled', async () => (await listOpenGaps(db, network_id)).length === 0)
  expect(await listRereads(db, network_id)).not.toEqual([])
})
