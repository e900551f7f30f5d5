import type { Log } from '../../lib/log.ts'
import type { EventKind, EventName } from '../../storage/tracking/operational-events.ts'

// The names are part of the interface: alerts of operators match them.
const names: Readonly<Record<EventKind, { opened: string; resolved: string }>> = {
  tracker_failing: { opened: 'tracker_failing', resolved: 'tracker_recovered' },
  tracker_stalled: { opened: 'tracker_stalled', resolved: 'tracker_recovered' },
  gap: { opened: 'gap_opened', resolved: 'gap_closed' },
}

const messages: Readonly<Record<EventKind, { opened: string; resolved: string }>> = {
  tracker_failing: { opened: 'tracking fails', resolved: 'tracking works again' },
  tracker_stalled: { opened: 'tracking has stalled', resolved: 'tracking moves on again' },
  gap: { opened: 'blocks are missing', resolved: 'missing blocks were filled in' },
}

/** Logs that an event was opened or resolved, with its stable name in the field `event`. */
export function logEvent(
  log: Log,
  state: 'opened' | 'resolved',
  { kind, ...fields }: EventName & { detail?: string },
): void {
  const level = state === 'opened' ? 'error' : 'info'
  log[level]({ event: names[kind][state], ...fields }, messages[kind][state])
}
