import type { Db } from '../../storage/database.ts'
import { addRateUsage, loadRateUsage, periodStarts } from '../../storage/rate-usage.ts'
import type { UsageStore } from './usage-store.ts'

/** Keeps the counters in the database. */
export const createUsageStore = (db: Db): UsageStore => ({
  async load(organization_id, chain, now) {
    const used = await loadRateUsage(db, organization_id, chain, new Date(now))
    const starts = periodStarts(new Date(now))
    return (['hour', 'day', 'month'] as const).map((period) => ({
      organization_id,
      chain,
      period,
      period_start: starts[period].getTime(),
      used: used[period],
    }))
  },
  async add(deltas) {
    const totals = await addRateUsage(
      db,
      deltas.map(({ delta, period_start, ...key }) => ({
        ...key,
        period_start: new Date(period_start),
        used: delta,
      })),
    )
    return totals.map((total) => ({ ...total, period_start: total.period_start.getTime() }))
  },
})
