import { randomUUID } from 'node:crypto'
import { type CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import type { Db } from '../pg/database.ts'
import { claimJobs, enqueueJob, keepJob } from './jobs.ts'

const { db, pool } = await freshDatabase()

it('jobs are taken from the organizations in turn, however many one of them has', async () => {
  const { network_id, createCaller } = await createWalletBench(db, 't')
  const [many, few] = [await createCaller(), await createCaller()]
  const kind = 'refresh_balances'
  const enqueue = (organization_id: string, ms: number) =>
    enqueueJob(db, {
      ...{ job_id: randomUUID(), kind, organization_id, network_id, payload: {} },
      claimMs: ms - 60_000,
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

it('an organization gets its turn behind thousands of older jobs of another one', async () => {
  const { network_id, createCaller } = await createWalletBench(db, 't', { network: 'old' })
  const [many, few] = [await createCaller(), await createCaller()]
  const enqueue = (organization_id: string | null, count: number, age: string) =>
    sql`
      insert into job (job_id, kind, organization_id, network_id, payload, attempt_count,
        next_attempt_time, create_time, update_time)
      select gen_random_uuid(), 'token_metadata', ${organization_id}::uuid, ${network_id}::int2, '{}',
        1, now() - ${age}::interval, now(), now()
      from generate_series(1, ${count}::int4) n`.execute(db)
  await enqueue(many.organization_id, 3_000, '1 hour')
  await enqueue(few.organization_id, 2, '1 minute')
  // As the version before stored them.
  await enqueue(null, 3, '1 second')
  const kind = 'token_metadata'
  const claim = (limit: number, open: { organization_id: string | null }[] = []) =>
    claimJobs(db, { kind, network_id, limit, claimMs: 60_000, open })
  const owners = (jobs: { organization_id: string | null }[]) =>
    jobs.map(({ organization_id }) => organization_id).toSorted()
  expect(owners(await claim(3))).toEqual(
    [many.organization_id, few.organization_id, null].toSorted(),
  )
  // One at a time, while another one of the first is worked on.
  expect(owners(await claim(1, [many]))).toEqual([few.organization_id])
  expect(owners(await claim(1, [many]))).toEqual([null])
  expect(owners(await claim(1, [many, { organization_id: null }]))).toEqual([many.organization_id])
})

it('a claim reads the jobs that are due, however many wait for later', async () => {
  const { network_id, createCaller } = await createWalletBench(db, 't', { network: 'waiting' })
  const { organization_id } = await createCaller()
  await sql`
    insert into job (job_id, kind, organization_id, network_id, payload, attempt_count, next_attempt_time,
      create_time, update_time)
    select gen_random_uuid(), 'token_metadata', ${organization_id}::uuid, ${network_id}::int2, '{}', 1, now() + interval '1 hour' * n, now(), now()
    from generate_series(1, 20000) n`.execute(db)
  await sql`analyze job`.execute(db)
  const statements: CompiledQuery[] = []
  const watched: Db = new Kysely({
    dialect: new PostgresDialect({ pool }),
    log: ({ query }) => void statements.push(query),
  })
  const claim = { kind: 'token_metadata', network_id, limit: 8, claimMs: 4_000 } as const
  expect(await claimJobs(watched, claim)).toEqual([])
  const [{ sql: text, parameters } = expect.fail()] = statements
  const { rows } = await pool.query(`explain (analyze, format json) ${text}`, [...parameters])
  const plan = JSON.stringify(rows[0]['QUERY PLAN'])
  expect(plan).toContain('job_due_of_organization')
  for (const [, removed] of plan.matchAll(/"Rows Removed by Filter":(\d+)/g))
    expect(Number(removed)).toBeLessThan(100)
})
