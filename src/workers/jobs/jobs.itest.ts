import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { type Db, openDatabase } from '../../storage/pg/database.ts'
import { enqueueJob, finishJob, type JobRow } from '../../storage/tracking/jobs.ts'
import { startJobs } from './jobs.ts'

const { db, connection } = await freshDatabase()
const kind = 'refresh_balances'

const startBench = async () => {
  const { network_id, createCaller } = await createWalletBench(db, 't', {
    network: `jobs-${randomUUID()}`,
  })
  const { organization_id } = await createCaller()
  const enqueue = () =>
    enqueueJob(db, {
      ...{ job_id: randomUUID(), kind, organization_id, network_id, payload: {} },
      claimMs: 0,
    })
  await enqueue()
  const start = (
    at: Db,
    work: (job: JobRow, signal: AbortSignal) => Promise<unknown>,
    clock: Clock = systemClock,
  ) => {
    const jobs = startJobs({
      ...{ db: at, clock, log: silentLog, network_id, kind, atOnce: 2, pollMs: 100 },
      work: async (job, signal) => void (await work(job, signal)),
    })
    onTestFinished(jobs.stop)
  }
  return { start, enqueue }
}

test('a job of a process that has died is worked on by another one within 5 s', async () => {
  const { start } = await startBench()
  const dying = openDatabase({ connection, log: silentLog })
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  start(dying.db, async () => {
    begun.resolve()
    await ended.promise
  })
  // Before its jobs are stopped.
  onTestFinished(() => ended.resolve())
  await begun.promise
  let isDone = false
  start(db, async (job) => {
    isDone = await finishJob(db, job)
  })
  // As after a kill: nothing of it reaches the database from now on.
  await dying.stop()
  const died = performance.now()
  await waitFor('another one has worked on it', () => isDone)
  expect(performance.now() - died).toBeLessThan(5_000)
}, 30_000)

test('a job that takes longer than a claim is not worked on twice', async () => {
  const { start } = await startBench()
  let count = 0
  let isDone = false
  const work = async (job: JobRow) => {
    count++
    await systemClock.sleep(6_000)
    isDone = await finishJob(db, job)
  }
  start(db, work)
  start(db, work)
  await waitFor('it is done', () => isDone)
  expect(count).toBe(1)
}, 30_000)

test('a process whose clock is ahead takes no job that another one works on', async () => {
  const { start } = await startBench()
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  let count = 0
  let isDone = false
  const work = async (job: JobRow) => {
    count++
    begun.resolve()
    await gate.promise
    isDone = await finishJob(db, job)
  }
  start(db, work)
  await begun.promise
  start(db, work, { ...systemClock, now: () => Date.now() + 60_000 })
  await systemClock.sleep(500)
  gate.resolve()
  await waitFor('it is done', () => isDone)
  expect(count).toBe(1)
})

test('work on a job that another process has claimed is stopped', async () => {
  const { start } = await startBench()
  let isStopped = false
  const begun = Promise.withResolvers<JobRow>()
  start(db, async (job, signal) => {
    begun.resolve(job)
    await systemClock.sleep(60_000, signal).catch(() => {})
    isStopped ||= signal.aborted
  })
  const { job_id } = await begun.promise
  // As it is where a process was suspended for longer than a claim.
  await db
    .updateTable('job')
    .set({ attempt_count: 9, next_attempt_time: new Date(Date.now() + 3_600_000) })
    .where('job_id', '=', job_id)
    .execute()
  await waitFor('its work is stopped', () => isStopped)
})

test('a job that takes long occupies one place, and the others are worked on beside it', async () => {
  const { start, enqueue } = await startBench()
  const gate = Promise.withResolvers<void>()
  for (let count = 0; count < 5; count++) await enqueue()
  let begun = 0
  let done = 0
  start(db, async (job) => {
    if (begun++ === 0) await gate.promise
    await finishJob(db, job)
    done++
  })
  // Before its jobs are stopped.
  onTestFinished(() => gate.resolve())
  await waitFor('all others are done', () => done === 5)
  expect(begun).toBe(6)
})
