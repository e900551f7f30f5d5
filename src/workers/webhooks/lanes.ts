import type { ClaimedDelivery, QueuedWebhook } from '../../storage/webhooks/delivery-claims.ts'
import type { Endpoint } from './receivers.ts'

/** A claimed delivery with where it goes. */
export type PendingDelivery = { claim: ClaimedDelivery; receiver: Endpoint }

type Lane = {
  webhook_id: string
  organization_id: string
  /** Being sent. */
  open: number
  /** Claimed, and not being sent yet. */
  queue: PendingDelivery[]
  /** Failed attempts in a row. */
  failures: number
  /** A failing receiver is left alone until then. */
  pausedUntil: number
  /** A running average. */
  durationMs: number
  /** There was more to claim than was claimed. */
  hasMore: boolean
}

/** How to bound what is under way. */
export type LaneLimits = {
  /** At once to one receiver. */
  perReceiver: number
  /** Claims of this process in all; an organization has half of them at most. */
  total: number
}

// The pause of a failing receiver doubles from the first to the longest. Retries of single
// deliveries have their own, longer schedule.
const firstPauseMs = 100
const longestPauseMs = 1_000
// Averages that decide how much is claimed: below the first a receiver counts as fast, above the
// second as slow.
const fastMs = 100
const slowMs = 2_000
// Of one claim: its time grows with them, and what another organization gets meanwhile waits for it.
const mostWebhooks = 128
// Of the bodies of one organization that are claimed; it claims no more until some of them are sent.
const mostBytes = 32 * 1_048_576
// Idle lanes hold averages only; without them a receiver begins as an average one.
const keptLanes = 10_000

/**
 * One lane per webhook: how much may be claimed for it and sent at once. A fast receiver gets its
 * next deliveries claimed ahead, a slow one few at a time, and one that fails a single one at a time
 * with a pause: so that no receiver takes the place of others.
 */
export function createLanes({ perReceiver, total }: LaneLimits) {
  const lanes = new Map<string, Lane>()
  const perOrganization = new Map<string, number>()
  const bytesOf = new Map<string, number>()
  let held = 0
  let turn = 0

  // Claims of a webhook in this process, being sent or not.
  const heldBy = ({ open, queue }: Lane): number => open + queue.length

  const laneOf = ({
    webhook_id,
    organization_id,
  }: Pick<QueuedWebhook, 'webhook_id' | 'organization_id'>): Lane => {
    const known = lanes.get(webhook_id)
    if (known) return known
    // Only idle lanes are evicted: those with claims must be counted until they end.
    if (lanes.size >= keptLanes)
      for (const lane of lanes.values()) if (heldBy(lane) === 0) lanes.delete(lane.webhook_id)
    const lane: Lane = {
      webhook_id,
      organization_id,
      open: 0,
      queue: [],
      failures: 0,
      pausedUntil: 0,
      durationMs: fastMs,
      hasMore: false,
    }
    lanes.set(webhook_id, lane)
    return lane
  }

  const count = ({ organization_id }: Lane, change: number): void => {
    held += change
    const now = (perOrganization.get(organization_id) ?? 0) + change
    if (now === 0) perOrganization.delete(organization_id)
    else perOrganization.set(organization_id, now)
  }

  const countBytes = (organization_id: string, change: number): void => {
    const now = (bytesOf.get(organization_id) ?? 0) + change
    if (now === 0) bytesOf.delete(organization_id)
    else bytesOf.set(organization_id, now)
  }

  const roomOf = (lane: Lane, now: number): number => {
    const has = heldBy(lane)
    // One attempt shows whether it is back.
    if (lane.failures > 0) return has === 0 && now >= lane.pausedUntil ? 1 : 0
    if (lane.durationMs > slowMs) return Math.ceil(perReceiver / 4) - has
    if (lane.durationMs >= fastMs) return perReceiver - has
    // Claimed in larger lots: a claim costs the database much the same whatever its size.
    return has <= perReceiver ? 4 * perReceiver - has : 0
  }

  // A failing receiver gets one at a time, whatever is claimed for it.
  const startable = (lane: Lane): PendingDelivery[] => {
    const most = lane.failures > 0 ? 1 : perReceiver
    const deliveries = lane.queue.splice(0, Math.max(0, most - lane.open))
    lane.open += deliveries.length
    return deliveries
  }

  return {
    held: () => held,
    open: () => lanes.values().reduce((sum, { open }) => sum + open, 0),

    /**
     * How many to claim of each webhook, in turns of the organizations, and of those webhooks first that have least under
     * way: one organization may have thousands of webhooks. Of each its part only, because a queue may turn out shorter than
     * what is asked for. `room` bounds the claims of all, and `roomFor` those of one organization.
     */
    plan: (
      due: readonly QueuedWebhook[],
      now: number,
      {
        room: most,
        roomFor = () => most,
      }: { room: number; roomFor?: (organization_id: string) => number },
    ) => {
      const wanted: { organization_id: string; webhook_id: string; count: number }[] = []
      let left = Math.min(most, total - held)
      const spoken = new Map<string, number>()
      // Begun elsewhere every time: what is always last in a long row would never be served.
      turn = due.length > 0 ? (turn + 97) % due.length : 0
      const hungry = [...due.slice(turn), ...due.slice(0, turn)]
        .map((webhook) => laneOf(webhook))
        .filter((lane) => roomOf(lane, now) > 0)
      for (const lane of hungry) lane.hasMore = true
      // Half for one organization at the most: the rest stays for the others.
      const half = Math.max(1, Math.floor(total / 2))
      const heldFor = (organization_id: string) => perOrganization.get(organization_id) ?? 0
      const asking = inTurns(
        hungry
          .filter(
            ({ organization_id }) =>
              heldFor(organization_id) < half && (bytesOf.get(organization_id) ?? 0) < mostBytes,
          )
          .sort((a, b) => heldBy(a) - heldBy(b)),
        ({ organization_id }) => organization_id,
      )
      asking.forEach((lane, index) => {
        const { webhook_id, organization_id } = lane
        const mine = spoken.get(organization_id) ?? 0
        const share = Math.min(half - heldFor(organization_id), roomFor(organization_id)) - mine
        const room = roomOf(lane, now)
        const part = Math.max(1, Math.floor(left / (asking.length - index)))
        const number = Math.min(room, share, left, part)
        lane.hasMore = number < room || wanted.length >= mostWebhooks
        if (number <= 0 || wanted.length >= mostWebhooks) return
        wanted.push({ organization_id, webhook_id, count: number })
        spoken.set(organization_id, mine + number)
        left -= number
      })
      return wanted
    },

    /** When the first paused receiver of these may be tried again. */
    resumeTime: (due: readonly QueuedWebhook[], now: number): number =>
      due.reduce((first, webhook) => {
        const lane = lanes.get(webhook.webhook_id)
        const waits = lane && lane.failures > 0 && heldBy(lane) === 0 && lane.pausedUntil > now
        return waits ? Math.min(first, lane.pausedUntil) : first
      }, Number.POSITIVE_INFINITY),

    /**
     * Takes what was claimed and gives what is to be sent now. Less than what was asked for is all that was due, unless the
     * claim was cut: a look and a claim after each of thousands of single deliveries would find nothing.
     */
    add: (
      deliveries: readonly PendingDelivery[],
      wanted: readonly (Pick<QueuedWebhook, 'webhook_id' | 'organization_id'> & {
        count: number
      })[],
      { isCut = false }: { isCut?: boolean } = {},
    ) => {
      const starting: PendingDelivery[][] = []
      const claimed = Map.groupBy(deliveries, ({ claim }) => claim.webhook_id)
      for (const one of wanted) {
        const mine = claimed.get(one.webhook_id) ?? []
        const lane = laneOf(one)
        lane.queue.push(...mine)
        count(lane, mine.length)
        countBytes(lane.organization_id, lengthOf(mine))
        lane.hasMore = isCut || mine.length >= one.count
        if (mine.length > 0) starting.push(startable(lane))
      }
      // Those of one webhook together, in their order.
      return inTurns(starting, ([first]) => first?.claim.organization_id ?? '').flat()
    },

    /**
     * Notes how an attempt ended, or that there was none. Gives what to send next, what to give back
     * because the receiver fails, and whether there is room to claim more.
     */
    finish: (
      { claim }: PendingDelivery,
      {
        isWell,
        durationMs,
        now,
      }: { isWell?: boolean | undefined; durationMs: number; now: number },
    ): { next: PendingDelivery[]; dropped: PendingDelivery[]; isHungry: boolean } => {
      const lane = laneOf(claim)
      lane.open--
      count(lane, -1)
      countBytes(lane.organization_id, -claim.data.length)
      if (isWell !== undefined) lane.durationMs += (durationMs - lane.durationMs) / 4
      let dropped: PendingDelivery[] = []
      if (isWell) lane.failures = 0
      else if (isWell === false) {
        const pause = Math.min(firstPauseMs * 2 ** Math.min(lane.failures, 10), longestPauseMs)
        lane.failures++
        lane.pausedUntil = now + pause
        // Given back at once, so that claims for a dead receiver take no place of others.
        dropped = lane.queue.splice(0)
        count(lane, -dropped.length)
        countBytes(lane.organization_id, -lengthOf(dropped))
      }
      const next = startable(lane)
      const isHungry = lane.hasMore && roomOf(lane, Number.POSITIVE_INFINITY) > 0
      // A slow receiver is remembered: forgotten, it would get four times as many at once again.
      const isSlow = lane.durationMs > slowMs
      if (heldBy(lane) === 0 && lane.failures === 0 && !lane.hasMore && !isSlow)
        lanes.delete(lane.webhook_id)
      return { next, dropped, isHungry }
    },

    /** Takes all that is not being sent yet. */
    drain: (): PendingDelivery[] => {
      const all = [...lanes.values()].flatMap((lane) => {
        count(lane, -lane.queue.length)
        return lane.queue.splice(0)
      })
      return all
    },
  }
}

const lengthOf = (deliveries: readonly PendingDelivery[]): number =>
  deliveries.reduce((sum, { claim }) => sum + claim.data.length, 0)

/** The first item of each group, then the second of each, and so on; within a group the order stays. */
const inTurns = <item>(items: readonly item[], groupOf: (item: item) => string): item[] => {
  const groups = [...Map.groupBy(items, groupOf).values()]
  if (groups.length < 2) return [...items]
  const longest = Math.max(...groups.map((group) => group.length))
  return Array.from({ length: longest }, (_, at) =>
    groups.flatMap((group) => group[at] ?? []),
  ).flat()
}
