import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { claimJobs, enqueueJob, keepJob } from './jobs.ts'

const { db } = await freshDatabase()

it('jobs are taken from the organizations in turn, however many one of them has', async () => {
  const { network_id, createCaller } = await createWalletBench(db, 't')
  const [many, few] = [await createCaller(), await createCaller()]
  const kind = 'refresh_balances'
  const enqueue = (organization_id: string, ms: number) =>
    enqueueJob(db, {
      ...{ job_id: randomUUID(), kind, organization_id, network_id, payload: {} },
      ...{ next_attempt_time: new Date(ms), now: new Date(0) },
    })
  for (let ms = 0; ms < 20; ms++) await enqueue(many.organization_id, ms)
  await enqueue(few.organization_id, 100)
  const claim = () => claimJobs(db, { kind, network_id, limit: 2, claimMs: 60_000 })
  const first = await claim()
  expect(first.map((job) => job.organization_id).toSorted()).toEqual(
    [many.organization_id, few.organization_id].toSorted(),
  )
  // A page is done and the job waits for its turn again.
  const paged = first.find((job) => job.organization_id === few.organization_id)!
  await keepJob(db, paged, { keepMs: 0 })
  const second = await claim()
  expect(second.map((job) => job.job_id)).toContain(paged.job_id)
  expect(second).toHaveLength(2)
})
