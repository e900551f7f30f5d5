import { invalidRequest } from '../contract/validate.ts'

// The year 5138; in milliseconds the year 1973, before which no chain was.
const firstMillisecond = 100_000_000_000

/** Reads the two ends of a time range, both included; undefined where it has none (docs/decisions/requests.md). */
export const readTimes = ({
  start_time,
  end_time,
}: {
  start_time?: number | undefined
  end_time?: number | undefined
}): { from_time: Date | undefined; to_time: Date | undefined } => {
  const late = Object.entries({ start_time, end_time }).filter(([, time]) => isTooLate(time))
  if (late.length > 0)
    throw invalidRequest(
      late.map(([field]) => ({
        field,
        reason: 'OUT_OF_RANGE',
        detail: 'Is in milliseconds or finer; must be Unix time in seconds.',
      })),
    )
  if (start_time !== undefined && end_time !== undefined && start_time > end_time)
    throw invalidRequest([
      { field: 'start_time', reason: 'OUT_OF_RANGE', detail: 'Must not be after end_time.' },
    ])
  const time = (seconds: number, ms: number) => new Date(seconds * 1000 + ms)
  return {
    from_time: start_time === undefined ? undefined : time(start_time, 0),
    // The whole second counts.
    to_time: end_time === undefined ? undefined : time(end_time, 999),
  }
}

const isTooLate = (time: number | undefined): boolean =>
  time !== undefined && time >= firstMillisecond
