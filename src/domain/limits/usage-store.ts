import type { CalendarPeriod } from './windows.ts'

/** Names one stored counter; `period_start` is in milliseconds. */
type UsageKey = {
  organization_id: string
  chain: string
  period: CalendarPeriod
  period_start: number
}

/** An amount to add to a stored counter. */
export type UsageDelta = UsageKey & { delta: number }

/** A stored counter. */
export type UsageTotal = UsageKey & { used: number }

/** Where hour, day and month counters outlive the process. */
export type UsageStore = {
  /** The counters of the windows that hold `now`. */
  load(organization_id: string, chain: string, now: number): Promise<readonly UsageTotal[]>
  /**
   * Adds all or nothing and returns the new totals. Keys are unique and sorted. A batch that
   * failed is repeated unchanged under the same id, so that a store can detect that the first
   * attempt did reach it.
   */
  add(deltas: readonly UsageDelta[], batch_id: string): Promise<readonly UsageTotal[]>
}
