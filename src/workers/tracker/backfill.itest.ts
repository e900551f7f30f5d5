import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import {
  createTrackedBenches,
  listAll,
  type TrackedBench,
} from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { BlockHeader } from '../../chains/chain.ts'
import { systemClock } from '../../lib/clock.ts'
import { insertGap } from '../../storage/tracking/gaps.ts'
import { BackfillError, type BackfillOptions, runBackfill } from './backfill.ts'

const database = await freshDatabase()
const { db } = database
const { startBench, settled, addWebhook, notified } = createTrackedBenches(database)
const { signal } = new AbortController()

const backfill = ({ bench }: TrackedBench, range: Partial<BackfillOptions> = {}) =>
  runBackfill({
    db,
    clock: systemClock,
    network_id: bench.network_id,
    chain: bench.chain,
    from: 1,
    signal,
    ...range,
  })

const noteGap = (network_id: number, reason: string) =>
  insertGap(db, { network_id, from_block: 30, to_block: 60, reason, create_time: new Date() })

/** A chain with an untracked history, and a wallet that is registered after it. */
const startLate = async () => {
  const setup = await startBench('c')
  const { chain, account, address } = setup.bench
  const pay = (value: bigint) => ({ movements: [{ from: account(9), to: account(1), value }] })
  for (let value = 1n; value <= 120n; value++) chain.mine([pay(value)])
  setup.start()
  await settled(setup.bench)
  const { wallet_id } = await setup.caller.call('RegisterWallet', {
    name: 'w',
    address: address(1),
    confirmation: 1,
  })
  chain.mine([pay(500n)])
  await settled(setup.bench)
  const values = async () =>
    (await listAll(setup.caller, { wallet_id, page_size: 100 })).map(({ value }) => Number(value))
  return { ...setup, pay, values }
}

it('history is added once, in its place, and webhooks notify it as backfilled', async () => {
  const setup = await startLate()
  const webhook_id = await addWebhook(setup.bench, setup.caller, 1)
  expect(await setup.values()).toEqual([500])
  const seen: number[] = []
  const onProgress = ({ block_number }: { block_number: number }) => seen.push(block_number)
  expect(await backfill(setup, { from: 21, onProgress })).toEqual({
    from: 21,
    to: 121,
    transfers: 100,
    closed: 0,
    missing: [],
  })
  expect(seen.at(-1)).toBe(121)
  const late = Array.from({ length: 100 }, (_, at) => 120 - at)
  expect(await setup.values()).toEqual([500, ...late])
  expect((await backfill(setup)).transfers).toBe(20)
  expect((await backfill(setup)).transfers).toBe(0)
  expect((await setup.values()).length).toBe(121)
  expect(await notified(webhook_id)).toEqual([])
  setup.bench.chain.mine()
  await settled(setup.bench)
  // More than a block releases itself.
  await waitFor('all are notified', async () => (await notified(webhook_id)).length === 120)
  const rows = await notified(webhook_id)
  expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, at) => at + 1))
  const values = rows.map(({ data }) => Number(data.transfers[0].value))
  expect(values).toEqual(Array.from({ length: 120 }, (_, at) => at + 1))
  for (const { data } of rows) expect(data).toMatchObject({ backfilled: true })
})

it('an interrupted backfill continues from its position', async () => {
  const setup = await startLate()
  const stopping = new AbortController()
  const first = backfill(setup, {
    to: 100,
    signal: stopping.signal,
    onProgress: () => stopping.abort(new Error('killed')),
  })
  await expect(first).rejects.toThrow('killed')
  const between = (await setup.values()).length
  expect(between).toBeGreaterThan(1)
  const begun: BlockHeader[] = []
  const { header } = setup.bench.chain
  setup.bench.chain.header = async (...question) => {
    const found = await header(...question)
    if (found) begun.push(found)
    return found
  }
  await backfill(setup, { to: 100 })
  expect(begun[0]!.number).toBe(between - 1)
  expect((await setup.values()).length).toBe(101)
})

it('a reorganization during a backfill leaves nothing of the old branch', async () => {
  const setup = await startLate()
  const { chain } = setup.bench
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
            Array.from({ length: 31 }, (_, at) => [setup.pay(1_000n + BigInt(at))]),
          )
          await settled(setup.bench)
        }
      }
      yield event
    }
  }
  await backfill(setup)
  expect(forked).toBe(true)
  await settled(setup.bench)
  const values = await setup.values()
  expect(values.filter((value) => value > 91 && value < 1_000)).toEqual([])
  expect(new Set(values).size).toBe(values.length)
  expect(values.length).toBe(91 + 31)
})

it('a backfill closes a gap of the tracker, and invalid ranges are refused', async () => {
  const setup = await startLate()
  const { network_id } = setup.bench
  await noteGap(network_id, 'pruned')
  expect((await backfill(setup, { from: 30, to: 60 })).closed).toBe(1)
  await expect(backfill(setup, { from: 5_000 })).rejects.toThrow(BackfillError)
  const untracked = await startBench('c')
  await expect(backfill(untracked)).rejects.toThrow('never tracked')
})

it('does not close a gap of which it does not know everything either', async () => {
  const setup = await startLate()
  const { chain, network_id } = setup.bench
  await noteGap(network_id, 'away')
  const { follow } = chain
  chain.follow = async function* (...args) {
    for await (const event of follow(...args))
      yield event.kind === 'blocks'
        ? { ...event, blocks: event.blocks.map((block) => ({ ...block, lacks: 'away' })) }
        : event
  }
  expect(await backfill(setup, { from: 30, to: 60 })).toMatchObject({
    closed: 0,
    missing: [{ from: 30, to: 60, reason: 'away' }],
  })
  chain.follow = follow
  expect(await backfill(setup, { from: 30, to: 60 })).toMatchObject({ closed: 1, missing: [] })
})
