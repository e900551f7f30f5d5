import type { Db } from '../../storage/pg/database.ts'
import {
  listQueuedOf,
  listQueuedWebhooks,
  type QueuedWebhook,
  webhooksPerLook,
} from '../../storage/webhooks/delivery-claims.ts'

/** What is queued. A part where there is too much for one look. */
type Queued = { queued: readonly QueuedWebhook[]; isPart: boolean }

// Organizations whose further webhooks one look reads, and those that are remembered.
const longerPerLook = 8
const keptLonger = 1_000
// For so long one look is enough while claims find as much as they ask for: long queues have more. A look is a step into the
// index for each webhook, 0.9 ms of the database for 20 webhooks that deliver at full speed.
const keptMs = 50

/**
 * Looks at what is queued, now or later: webhooks and not notifications, one row each, however long their queues are. Where
 * there is too much for one look, the next one continues, with other organizations and with other webhooks of those that have
 * many.
 */
export function createLook(db: Db) {
  // The organization that the next look begins after, and where it continues within those that have many webhooks.
  let after: string | undefined
  const within = new Map<string, string>()
  let turn = 0
  let latest: (Queued & { time: number; isKept: boolean }) | undefined

  const read = async (): Promise<Queued> => {
    const { webhooks, longer, last } = await listQueuedWebhooks(db, after)
    const isPart = after !== undefined || last !== undefined || longer.length > 0
    after = last
    const queued = [...webhooks]
    for (const end of takeTurns(longer, turn++ * longerPerLook, longerPerLook)) {
      const { organization_id } = end
      const webhook_id = within.get(organization_id) ?? end.webhook_id
      const more = await listQueuedOf(db, { organization_id, webhook_id })
      queued.push(...more)
      within.delete(organization_id)
      if (more.length === webhooksPerLook) within.set(organization_id, more.at(-1)!.webhook_id)
      if (within.size > keptLonger) within.delete(within.keys().next().value!)
    }
    return { queued, isPart }
  }

  return {
    look: async (now: number): Promise<Queued> => {
      const known = latest
      latest = undefined
      if (known?.isKept && now >= known.time && now < known.time + keptMs) {
        latest = { ...known, isKept: false }
        return known
      }
      const mine = { queued: [], isPart: true, time: now, isKept: false }
      latest = mine
      const found = await read()
      // Unless something was announced meanwhile.
      if (latest === mine) latest = { ...mine, ...found }
      return found
    },
    /** All that was claimed after the last look was there: the next one may be left out. */
    keep(): void {
      if (latest && !latest.isPart) latest.isKept = true
    },
    /** Something else may be due. */
    forget(): void {
      latest = undefined
    },
  }
}

/** Some items of a list from a place on, which goes round. */
const takeTurns = <item>(items: readonly item[], from: number, count: number): item[] =>
  Array.from(
    { length: Math.min(count, items.length) },
    (_, at) => items[(from + at) % items.length]!,
  )
