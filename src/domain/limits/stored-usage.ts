import { sql } from 'kysely'
import { addRateUsage, loadRateUsage } from '../../storage/access/rate-usage.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { UsageDelta, UsageStore, UsageTotal } from './usage-store.ts'
import { type CalendarPeriod, calendarWindows } from './windows.ts'

const PERIODS: readonly CalendarPeriod[] = ['hour', 'day', 'month']

const addDeltas = async (db: Db, deltas: readonly UsageDelta[]): Promise<UsageTotal[]> => {
  const rows = deltas.map(({ delta, period_start, ...key }) => ({
    ...key,
    period_start: new Date(period_start),
    used: delta,
  }))
  const totals = await addRateUsage(db, rows)
  return totals.map((total) => ({ ...total, period_start: total.period_start.getTime() }))
}

const readTotals = (db: Db, deltas: readonly UsageDelta[]): Promise<UsageTotal[]> =>
  addDeltas(
    db,
    deltas.map((delta) => ({ ...delta, delta: 0 })),
  )

const transactionId = async (db: Db): Promise<string> => {
  const { rows } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(db)
  return rows[0]!.id
}

const isCommitted = async (db: Db, id: string): Promise<boolean> => {
  const { rows } = await sql<{ status: string | null }>`
    select pg_xact_status(${id}::xid8) as status`.execute(db)
  const status = rows[0]!.status
  if (status === 'in progress') throw new Error(`transaction ${id} is still in progress`)
  return status === 'committed'
}

/** Keeps usage in the database; a batch counts once even when the answer to its commit was lost. */
export const createUsageStore = (db: Db): UsageStore => {
  let attempt: { batch_id: string; transaction: string } | undefined
  return {
    load: async (organization_id, chain, now) => {
      const used = await loadRateUsage(db, organization_id, chain, new Date(now))
      const starts = calendarWindows(now)
      return PERIODS.map((period) => ({
        organization_id,
        chain,
        period,
        period_start: starts[period],
        used: used[period],
      }))
    },
    add: async (deltas, batch_id) => {
      if (attempt?.batch_id === batch_id && (await isCommitted(db, attempt.transaction)))
        return await readTotals(db, deltas)
      return await db.transaction().execute(async (transaction) => {
        attempt = { batch_id, transaction: await transactionId(transaction) }
        return await addDeltas(transaction, deltas)
      })
    },
  }
}
