import { type RawBuilder, sql } from 'kysely'

// A transaction holds at most so many of these locks, whatever number of webhooks it writes for.
// Webhooks that share one only wait longer.
const buckets = 256
// Two-part advisory locks: the class keeps these apart from the locks of other purposes.
const lockClass = 5_713_302

const lock = (name: string, webhook_ids: readonly string[]): RawBuilder<unknown> => sql`
  select count(${sql.raw(name)}(${sql.lit(lockClass)}, bucket)) as held from (
    select distinct hashtext(webhook_id) & ${sql.lit(buckets - 1)} as bucket
    from unnest(${[...new Set(webhook_ids)]}::text[]) w (webhook_id) order by bucket) b`

/**
 * A statement that locks out all other writers of the queues of some webhooks. It comes after
 * the locks of the webhooks themselves, which are taken in the order of their ids, and before any row
 * of a queue: so writers wait, but never in a circle. Locking the rows in one order does the same and
 * costs every delivery another write. A claim takes no such lock, because it never waits.
 */
export const queuesAlone = (webhook_ids: readonly string[]): RawBuilder<unknown> =>
  lock('pg_advisory_xact_lock', webhook_ids)

/** The same for writers that only end their own deliveries: they do not lock each other out. */
export const queuesShared = (webhook_ids: readonly string[]): RawBuilder<unknown> =>
  lock('pg_advisory_xact_lock_shared', webhook_ids)
