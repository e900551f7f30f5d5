import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import type { Clock } from '../../lib/clock.ts'
import { claimJobs, enqueueJob } from '../../storage/tracking/jobs.ts'
import { refreshJobKind, runRefresh } from './refresh-job.ts'

const { db } = await freshDatabase()
const never = new AbortController().signal

/** A job whose page takes as long as the test wants, on a clock that the test moves. */
const startSlow = async (network: string) => {
  const bench = await createWalletBench(db, 'c', { network })
  const { chain, network_id, address } = bench
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
  let time = Date.now()
  const sleepers = new Set<{ until: number; wake(): void }>()
  const clock: Clock = {
    now: () => time,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { until: time + ms, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      }),
  }
  const advance = async (ms: number) => {
    await waitFor('it sleeps', () => sleepers.size > 0)
    time += ms
    for (const sleeper of sleepers)
      if (sleeper.until <= time) {
        sleepers.delete(sleeper)
        sleeper.wake()
      }
  }
  const gate = Promise.withResolvers<void>()
  const { readBalances } = chain
  chain.readBalances = async (queries, at, signal) => {
    await Promise.race([
      gate.promise,
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ])
    return await readBalances(queries, at, signal)
  }
  const job = await enqueueJob(db, {
    ...{ job_id: caller.organization_id, kind: refreshJobKind, network_id },
    organization_id: caller.organization_id,
    payload: { wallet_id, asset_type: chain.native.asset_type },
    claimMs: 4_000,
  })
  const running = runRefresh({ db, clock, chain, signal: never }, job)
  const claim = () => claimJobs(db, { kind: refreshJobKind, network_id, limit: 1, claimMs: 4_000 })
  const keptUntil = async (): Promise<number> => {
    const { next_attempt_time } = await db
      .selectFrom('job')
      .select('next_attempt_time')
      .where('job_id', '=', job.job_id)
      .executeTakeFirstOrThrow()
    return next_attempt_time.getTime()
  }
  return { running, advance, claim, keptUntil, finish: gate.resolve }
}

it('a page that takes longer than a claim is not claimed by another process', async () => {
  const { running, advance, claim, keptUntil, finish } = await startSlow('slow')
  for (let step = 0; step < 6; step++) {
    const before = await keptUntil()
    await advance(1_400)
    await waitFor('the claim is renewed', async () => (await keptUntil()) > before)
    expect(await claim()).toEqual([])
  }
  finish()
  expect(await running).toBe(true)
})

it('a job that another process has taken anyway is left to it', async () => {
  const { running, advance, claim } = await startSlow('taken')
  // As after a pause of the whole process.
  await advance(0)
  await db
    .updateTable('job')
    .set({ next_attempt_time: new Date(0) })
    .execute()
  expect(await claim()).toHaveLength(1)
  await advance(1_400)
  expect(await running).toBe(false)
})
