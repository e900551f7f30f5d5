// Work in the background that survives its process. A claim has a number: a job that another process has taken over cannot be
// ended or moved by the one that lost it. Claims begin and end by the server's clock: a process whose own clock is ahead
// would take jobs that others work on.

import { type RawBuilder, sql } from 'kysely'
import { highestId, lowestId } from '../../lib/ids.ts'
import type { accessTables, JobKind } from '../access/tables.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'

/** A stored job. */
export type JobRow = RowOf<typeof accessTables.job>

/** The right to work on a job: a later claim makes this one void. */
export type JobClaim = Pick<JobRow, 'job_id' | 'attempt_count'>

/**
 * Stores a job that its maker works on first; others take it over after `claimMs`. A job
 * that is there begins anew: what its runner reads from now on is what the new caller asked for.
 */
export const enqueueJob = async (
  db: Db,
  job: Pick<JobRow, 'job_id' | 'kind' | 'organization_id' | 'network_id'> & {
    payload: object
    claimMs: number
  },
): Promise<JobRow> => {
  // A job that is there gets a new claim number, so a process that works on it stops at its next page.
  const { rows } = await sql<JobRow>`
    insert into job (job_id, kind, organization_id, network_id, payload, attempt_count,
      next_attempt_time, create_time, update_time)
    values (${job.job_id}, ${job.kind}, ${job.organization_id}, ${job.network_id},
      ${JSON.stringify(job.payload)}::jsonb, 1, ${after(job.claimMs)}, clock_timestamp(), clock_timestamp())
    on conflict (job_id) do update set progress = null, last_error = null,
      attempt_count = job.attempt_count + 1, next_attempt_time = excluded.next_attempt_time,
      update_time = excluded.update_time
    returning *`.execute(db)
  return rows[0]!
}

// Organizations with jobs that one claim looks at. Where there are more, it begins at any of them.
const mostOrganizations = 256

const after = (ms: number) => sql`clock_timestamp() + ${ms}::float8 * interval '1 millisecond'`

/**
 * Takes due jobs of a kind; no other process gets them for `claimMs`. The oldest of each organization come first, so that
 * one with many jobs does not keep the others waiting. What the caller works on for an organization (`open`) counts as its
 * turns: a caller that claims one job at a time would always get those of the organization with the oldest ones.
 */
export const claimJobs = async (
  db: Db,
  claim: {
    kind: JobKind
    network_id: number
    claimMs: number
    limit: number
    open?: readonly Pick<JobRow, 'organization_id'>[]
  },
): Promise<JobRow[]> => {
  const { kind, network_id, claimMs, limit, open = [] } = claim
  const turnsOf = open.map(({ organization_id }) => organization_id)
  const mine = sql`kind = ${kind} and network_id = ${network_id}`
  // A step for each organization in the index (loose index scan), from a place on and then from the start. Those of an earlier
  // version have none. The time is selected once: compared with the function, the index would be read to its end.
  const next = (from: RawBuilder<unknown>) => sql`(
    select organization_id from job where ${mine} and organization_id > ${from}
    order by organization_id limit 1)`
  const walk = (from: RawBuilder<unknown>, to: RawBuilder<unknown>) => sql`
    with recursive owner (organization_id, place) as (
      select ${next(from)}, 1
      union all
      select ${next(sql`o.organization_id`)}, place + 1 from owner o
      where o.organization_id <= ${to} and place < ${sql.lit(mostOrganizations)})
    select organization_id from owner where organization_id <= ${to}`
  const place = sql`(select id from place)`
  const due = (owner: RawBuilder<unknown>) => sql`(
    select job_id, organization_id, next_attempt_time from job
    where ${mine} and organization_id ${owner}
      and next_attempt_time <= (select clock_timestamp())
    order by organization_id, next_attempt_time limit ${limit})`
  const { rows } = await sql<JobRow>`
    with place as materialized (select gen_random_uuid() as id),
    owner as materialized (
      (${walk(place, sql`${highestId}::uuid`)}) union all (${walk(sql`${lowestId}::uuid`, place)})
      limit ${sql.lit(mostOrganizations)}),
    due as materialized (
      select d.* from owner o, lateral ${due(sql`= o.organization_id`)} d
      union all ${due(sql`is null`)}),
    chosen as materialized (
      select job_id from (
        select job_id, next_attempt_time, row_number() over (
            partition by organization_id order by next_attempt_time)
          + (select count(*) from unnest(${turnsOf}::uuid[]) w (organization_id)
            where w.organization_id is not distinct from due.organization_id) as turn
        from due) d
      order by turn, next_attempt_time limit ${limit})
    update job set attempt_count = attempt_count + 1, next_attempt_time = ${after(claimMs)},
      update_time = clock_timestamp()
    where job_id in (
      select job_id from job where job_id in (select job_id from chosen)
        and next_attempt_time <= clock_timestamp() for update skip locked)
    returning *`.execute(db)
  return rows
}

/**
 * Keeps the claims of jobs for so long, and gives the jobs that no other process has claimed. What has been kept for longer
 * or put off since stays as it is.
 */
export const renewJobs = async (
  db: Db,
  claims: readonly JobClaim[],
  claimMs: number,
): Promise<Set<string>> => {
  const { rows } = await sql<{ job_id: string }>`
    with held as materialized (
      select j.job_id, j.attempt_count from job j
      join unnest(${claims.map(({ job_id }) => job_id)}::uuid[],
        ${claims.map(({ attempt_count }) => attempt_count)}::int4[]) c (job_id, attempt_count)
        on j.job_id = c.job_id and j.attempt_count = c.attempt_count),
    renewed as (
      update job j set next_attempt_time = ${after(claimMs)} from held h
      where j.job_id = h.job_id and j.attempt_count = h.attempt_count
        and j.next_attempt_time > clock_timestamp() and j.next_attempt_time < ${after(claimMs)})
    select job_id from held`.execute(db)
  return new Set(rows.map(({ job_id }) => job_id))
}

/** Notes how far a job is and keeps it for so long; false when another process has claimed it. */
export const keepJob = async (
  db: Db,
  { job_id, attempt_count }: JobClaim,
  change: { progress?: object; keepMs: number; last_error?: string },
): Promise<boolean> => {
  const { numAffectedRows } = await sql`
    update job set next_attempt_time = ${after(change.keepMs)}, update_time = clock_timestamp(),
      progress = coalesce(${change.progress ? JSON.stringify(change.progress) : null}::jsonb, progress),
      last_error = ${change.last_error ?? null}
    where job_id = ${job_id} and attempt_count = ${attempt_count}`.execute(db)
  return numAffectedRows === 1n
}

/** Removes a finished job; false when it was restarted meanwhile. */
export const finishJob = async (db: Db, { job_id, attempt_count }: JobClaim): Promise<boolean> => {
  const { numDeletedRows } = await db
    .deleteFrom('job')
    .where('job_id', '=', job_id)
    .where('attempt_count', '=', attempt_count)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
