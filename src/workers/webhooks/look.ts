import type { Db } from '../../storage/pg/database.ts'
import {
  listQueuedOf,
  listQueuedWebhooks,
  type QueuedWebhook,
  webhooksPerLook,
} from '../../storage/webhooks/delivery-claims.ts'

// Organizations whose further webhooks one look reads, and those that are remembered.
const longerPerLook = 8
const keptLonger = 1_000

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

  return async (): Promise<{ queued: QueuedWebhook[]; isPart: boolean }> => {
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
}

/** Some items of a list from a place on, which goes round. */
const takeTurns = <item>(items: readonly item[], from: number, count: number): item[] =>
  Array.from(
    { length: Math.min(count, items.length) },
    (_, at) => items[(from + at) % items.length]!,
  )
