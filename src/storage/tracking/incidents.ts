// Conditions that an operator or an owner is notified of once, however often they are looked at: stuck transactions and limits
// that are nearly used up.

import { sql } from 'kysely'
import type { UsagePeriod } from '../access/tables.ts'
import type { Db } from '../pg/database.ts'

const onTheWay = sql`('TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT')`
// Bound of one pass: a chain that stands still makes all its transactions stuck at once.
const most = 500

/** Opens an event for every transaction that was sent before a time and is in no block, and closes those that moved. */
export const recordStuckTransactions = async (
  db: Db,
  { sentBefore, now }: { sentBefore: Date; now: Date },
): Promise<void> => {
  await sql`
    insert into operational_event
      (event_id, kind, chain, network, organization_id, subject, detail, create_time, update_time)
    select gen_random_uuid(), 'transaction_stuck', n.chain, n.network, t.organization_id, t.transaction_id,
      'The transaction was sent at ' || to_char(t.sent_time at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        || ' and is in no block.', ${now}::timestamptz, ${now}::timestamptz
    from managed_transaction t join network n on n.network_id = t.network_id
    where t.transaction_state in ${onTheWay} and t.sent_time < ${sentBefore}
      and not exists (select from operational_event e where e.kind = 'transaction_stuck'
        and e.chain = n.chain and e.network = n.network and e.subject = t.transaction_id
        and e.resolve_time is null)
    order by t.sent_time limit ${most}
    on conflict do nothing`.execute(db)
  await sql`
    update operational_event e set resolve_time = ${now}
    where e.kind = 'transaction_stuck' and e.resolve_time is null and not exists (
      select from managed_transaction t where t.organization_id = e.organization_id
        and t.transaction_id = e.subject and t.transaction_state in ${onTheWay}
        and t.sent_time < ${sentBefore})`.execute(db)
}

/** The limits of organizations without records. */
export type LimitDefaults = {
  per_hour_limit: number
  per_day_limit: number
  per_month_limit: number
}

/**
 * Opens an event for every hour, day or month of which a share of the limit is used, and closes those of windows that
 * have passed. A window has one event, however often its use is looked at.
 */
export const recordNearLimits = async (
  db: Db,
  options: {
    defaults: LimitDefaults
    starts: Readonly<Record<UsagePeriod, Date>>
    share: number
    now: Date
  },
): Promise<void> => {
  const { defaults, starts, share, now } = options
  const percent = Math.round(share * 100)
  await sql`
    insert into operational_event
      (event_id, kind, chain, network, organization_id, subject, detail, create_time, update_time)
    select gen_random_uuid(), 'limit_near', u.chain, coalesce(n.network, ''), u.organization_id,
      u.organization_id || '/' || u.period || '/' || extract(epoch from u.period_start)::int8,
      u.used || ' of ' || l.most || ' calls of this ' || u.period || ' are used (${sql.raw(String(percent))} % or more).',
      ${now}::timestamptz, ${now}::timestamptz
    from rate_usage u
    join organization o on o.organization_id = u.organization_id
    left join rate_limit own on own.organization_id = u.organization_id and own.chain = u.chain
    left join rate_limit every on every.organization_id = u.organization_id and every.chain = '*'
    left join network n on n.chain = u.chain and n.is_default
    cross join lateral (select case u.period
      when 'hour' then coalesce(own.per_hour_limit, every.per_hour_limit, ${defaults.per_hour_limit}::int8)
      when 'day' then coalesce(own.per_day_limit, every.per_day_limit, ${defaults.per_day_limit}::int8)
      else coalesce(own.per_month_limit, every.per_month_limit, ${defaults.per_month_limit}::int8)
      end as most) l
    where ((u.period = 'hour' and u.period_start = ${starts.hour})
        or (u.period = 'day' and u.period_start = ${starts.day})
        or (u.period = 'month' and u.period_start = ${starts.month}))
      and l.most > 0 and u.used >= l.most * ${share}::float8
    limit ${most}
    on conflict do nothing`.execute(db)
  // The subject carries period and start, so an event is closed when its window is not the current one any more.
  const current = Object.entries(starts).map(
    ([period, start]) => `${period}/${start.getTime() / 1000}`,
  )
  await sql`
    update operational_event set resolve_time = ${now}
    where kind = 'limit_near' and resolve_time is null
      and split_part(subject, '/', 2) || '/' || split_part(subject, '/', 3) <> all(${current}::text[])`.execute(
    db,
  )
}
