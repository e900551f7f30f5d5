import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createManualClock } from '../../domain/limits/testing/fakes.ts'
import { silentLog } from '../../lib/log.ts'
import { pinIdentity } from '../../storage/tracking/networks.ts'
import { listEvents } from '../../storage/tracking/operational-events.ts'
import { startTrackerWatch, type TrackerWatchOptions } from './watch.ts'

const database = await freshDatabase()
const { db } = database
const { startBench, settled } = createTrackedBenches(database)
const start = Date.UTC(2026, 0, 1)

const idle = { failing: () => undefined }

/** A watch on a clock of its own, with what it has logged. */
const watchOf = (
  { chain, network_id }: Awaited<ReturnType<typeof startBench>>['bench'],
  options: Partial<TrackerWatchOptions> = {},
) => {
  const clock = createManualClock(start)
  const events: unknown[] = []
  const note = (fields: object) => events.push((fields as { event?: string }).event)
  const network = randomUUID()
  const watch = startTrackerWatch({
    db,
    clock,
    log: { ...silentLog, info: note, error: note },
    network_id,
    name: { chain: chain.service, network },
    chain,
    tracker: idle,
    ...options,
  })
  onTestFinished(watch.stop)
  const stored = async () => {
    const { open, resolved } = await listEvents(db, 100)
    const own = (event: { network: string }) => event.network === network
    return { open: open.filter(own), resolved: resolved.filter(own) }
  }
  /** Lets time pass, a look at a time, until something holds. */
  const until = (what: string, holds: () => boolean | Promise<boolean>) =>
    waitFor(what, async () => {
      clock.step(15_000)
      return await holds()
    })
  return { watch, clock, events, stored, until }
}

test('a chain whose blocks are stored is well, and so is one without new blocks', async () => {
  const { bench, start: track } = await startBench('c')
  const tracker = track()
  await settled(bench)
  const { watch, clock, events, stored } = watchOf(bench, { tracker })
  for (let look = 0; look < 20; look++) {
    clock.step(15_000)
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(watch.health()).toEqual({ health: 'ok', since: null, problem: '' })
  }
  bench.chain.mine()
  await settled(bench)
  clock.step(15_000)
  expect(watch.health().health).toBe('ok')
  expect(events).toEqual([])
  expect(await stored()).toEqual({ open: [], resolved: [] })
})

test('blocks that are not stored for a minute are a stall, until they are', async () => {
  const { bench, start: track } = await startBench('c')
  const first = track()
  await settled(bench)
  await first.stop()
  const { watch, events, stored, until } = watchOf(bench)
  bench.chain.mine()
  bench.chain.mine()
  await until('the stall is seen', () => watch.health().health === 'stalled')
  expect(watch.health().problem).toBe(
    'The nodes have block 2, and block 0 is the last that is stored.',
  )
  await waitFor('it is recorded', () => events.length > 0)
  expect(events).toEqual(['tracker_stalled'])
  expect((await stored()).open).toMatchObject([
    { kind: 'tracker_stalled', detail: watch.health().problem },
  ])
  track()
  await settled(bench)
  await until('it is over', () => events.length > 1)
  expect(watch.health().health).toBe('ok')
  expect(events).toEqual(['tracker_stalled', 'tracker_recovered'])
  expect(await stored()).toMatchObject({ open: [], resolved: [{ kind: 'tracker_stalled' }] })
})

test.each(['down', 'hanging'] as const)('nodes that are %s are a stall', async (mode) => {
  const { bench, start: track } = await startBench('p')
  track()
  await settled(bench)
  const head =
    mode === 'down'
      ? bench.chain.head
      : (signal: AbortSignal) =>
          bench.chain.head(AbortSignal.any([signal, AbortSignal.timeout(20)]))
  const { watch, events, until } = watchOf(bench, { chain: { head } })
  await until('it is well', () => watch.health().health === 'ok')
  bench.chain.setMode(mode)
  await until('the stall is seen', () => watch.health().health === 'stalled')
  expect(watch.health().problem).toMatch(/^No node reports its head: /)
  bench.chain.setMode('up')
  await until('it is over', () => events.at(-1) === 'tracker_recovered')
  expect(watch.health().health).toBe('ok')
})

test('nodes of another chain are reported as such', async () => {
  const { bench, start: track } = await startBench('c')
  await pinIdentity(db, bench.network_id, 'eip155:1:another')
  const tracker = track()
  await waitFor('it fails', () => tracker.failing() !== undefined)
  const { since, reason } = tracker.failing()!
  expect(reason).toContain('the nodes are of another chain')
  const failing = { failing: () => ({ since: start, reason }) }
  expect(since).toBeGreaterThan(0)
  const { watch, stored, until } = watchOf(bench, { tracker: failing })
  await until('it is recorded', async () => (await stored()).open.length > 0)
  expect(watch.health()).toEqual({
    health: 'failing',
    since: '2026-01-01T00:00:00.000Z',
    problem: `Tracking fails: ${reason}.`,
  })
  // It stays so, whatever the loop does in between.
  for (let turn = 0; turn < 10; turn++) {
    expect(tracker.failing()?.since).toBe(since)
    expect(tracker.status().state).toBe('failing')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
})

test('a failure ends when another process continues', async () => {
  const { bench, start: track } = await startBench('c')
  const other = track()
  await settled(bench)
  const tracker = { failing: () => ({ since: start + 1, reason: 'no route' }) }
  const { watch, until, events } = watchOf(bench, { tracker })
  await until('it is recorded', () => events.length > 0)
  expect(events).toEqual(['tracker_failing'])
  bench.chain.mine()
  await settled(bench)
  await until('it is over', () => events.length > 1)
  expect(watch.health().health).toBe('ok')
  await other.stop()
})
