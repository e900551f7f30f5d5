import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import {
  createTrackedBenches,
  listAll,
  type TrackedBench,
} from '../../../test/helpers/tracked-harness.ts'
import type { BlockHeader } from '../../chains/chain.ts'
import { systemClock } from '../../lib/clock.ts'
import { insertGap } from '../../storage/tracking/gaps.ts'
import { BackfillError, type BackfillOptions, runBackfill } from './backfill.ts'

const database = await freshDatabase()
const { db } = database
const { startBench, settled, addWebhook, told } = createTrackedBenches(database)
const { signal } = new AbortController()

const backfill = ({ bench }: TrackedBench, range: Partial<BackfillOptions> = {}) =>
  runBackfill({
    db,
    clock: systemClock,
    chain_id: bench.chain_id,
    chain: bench.chain,
    from: 1,
    signal,
    ...range,
  })

const noteGap = (chain_id: number, reason: string) =>
  insertGap(db, { chain_id, from_block: 30, to_block: 60, reason, create_time: new Date() })

/** A chain with a history that nobody looked at, and a wallet that is registered after it. */
const startLate = async () => {
  const scene = await startBench('c')
  const { chain, account, address } = scene.bench
  const pay = (value: bigint) => ({ movements: [{ from: account(9), to: account(1), value }] })
  for (let value = 1n; value <= 120n; value++) chain.mine([pay(value)])
  scene.start()
  await settled(scene.bench)
  const { wallet_id } = await scene.caller.call('RegisterWallet', {
    name: 'w',
    address: address(1),
    confirmation: 1,
  })
  chain.mine([pay(500n)])
  await settled(scene.bench)
  const values = async () =>
    (await listAll(scene.caller, { wallet_id, page_size: 100 })).map(({ value }) => Number(value))
  return { ...scene, pay, values }
}

it('history is added once, in its place, and webhooks notify it as backfilled', async () => {
  const scene = await startLate()
  const webhook_id = await addWebhook(scene.bench, scene.caller, 1)
  expect(await scene.values()).toEqual([500])
  const seen: number[] = []
  const onProgress = ({ block_number }: { block_number: number }) => seen.push(block_number)
  expect(await backfill(scene, { from: 21, onProgress })).toEqual({
    from: 21,
    to: 121,
    transfers: 100,
    closed: 0,
    missing: [],
  })
  expect(seen.at(-1)).toBe(121)
  const late = Array.from({ length: 100 }, (_, at) => 120 - at)
  expect(await scene.values()).toEqual([500, ...late])
  expect((await backfill(scene)).transfers).toBe(20)
  expect((await backfill(scene)).transfers).toBe(0)
  expect((await scene.values()).length).toBe(121)
  expect(await told(webhook_id)).toEqual([])
  scene.bench.chain.mine()
  await settled(scene.bench)
  const rows = await told(webhook_id)
  expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, at) => at + 1))
  const values = rows.map(({ data }) => Number(data.transfers[0].value))
  expect(values).toEqual(Array.from({ length: 120 }, (_, at) => at + 1))
  for (const { data } of rows) expect(data).toMatchObject({ backfilled: true })
})

it('what was interrupted goes on where it was', async () => {
  const scene = await startLate()
  const stopping = new AbortController()
  const first = backfill(scene, {
    to: 100,
    signal: stopping.signal,
    onProgress: () => stopping.abort(new Error('killed')),
  })
  await expect(first).rejects.toThrow('killed')
  const between = (await scene.values()).length
  expect(between).toBeGreaterThan(1)
  const begun: BlockHeader[] = []
  const { header } = scene.bench.chain
  scene.bench.chain.header = async (...question) => {
    const found = await header(...question)
    if (found) begun.push(found)
    return found
  }
  await backfill(scene, { to: 100 })
  expect(begun[0]!.number).toBe(between - 1)
  expect((await scene.values()).length).toBe(101)
})

it('a reorganization meanwhile leaves nothing of the old branch', async () => {
  const scene = await startLate()
  const { chain } = scene.bench
  let forked = false
  const { follow } = chain
  // The branch changes after blocks were fetched, and before they are stored.
  chain.follow = async function* (...args) {
    for await (const event of follow(...args)) {
      if (!forked && event.kind === 'blocks' && args[0].number < 100) {
        const stale = event.blocks.at(-1)!.number
        if (stale >= 100) {
          forked = true
          chain.reorganize(
            30,
            Array.from({ length: 31 }, (_, at) => [scene.pay(1_000n + BigInt(at))]),
          )
          await settled(scene.bench)
        }
      }
      yield event
    }
  }
  await backfill(scene)
  expect(forked).toBe(true)
  await settled(scene.bench)
  const values = await scene.values()
  expect(values.filter((value) => value > 91 && value < 1_000)).toEqual([])
  expect(new Set(values).size).toBe(values.length)
  expect(values.length).toBe(91 + 31)
})

it('a gap of the tracker is closed by it, and what makes no sense is refused', async () => {
  const scene = await startLate()
  const { chain_id } = scene.bench
  await noteGap(chain_id, 'pruned')
  expect((await backfill(scene, { from: 30, to: 60 })).closed).toBe(1)
  await expect(backfill(scene, { from: 5_000 })).rejects.toThrow(BackfillError)
  const untracked = await startBench('c')
  await expect(backfill(untracked)).rejects.toThrow('never tracked')
})

it('does not close a gap of which it does not know everything either', async () => {
  const scene = await startLate()
  const { chain, chain_id } = scene.bench
  await noteGap(chain_id, 'away')
  const { follow } = chain
  chain.follow = async function* (...args) {
    for await (const event of follow(...args))
      yield event.kind === 'blocks'
        ? { ...event, blocks: event.blocks.map((block) => ({ ...block, lacks: 'away' })) }
        : event
  }
  expect(await backfill(scene, { from: 30, to: 60 })).toMatchObject({
    closed: 0,
    missing: [{ from: 30, to: 60, reason: 'away' }],
  })
  chain.follow = follow
  expect(await backfill(scene, { from: 30, to: 60 })).toMatchObject({ closed: 1, missing: [] })
})
