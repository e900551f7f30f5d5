import { invalidRequest } from '../contract/validate.ts'

// Beyond this JavaScript has no dates; nothing is that late.
const lastSecond = 8_640_000_000_000

/** Reads the two ends of a time range, both included; undefined where it has none (docs/decisions.md). */
export const readTimes = ({
  start_time,
  end_time,
}: {
  start_time?: number | undefined
  end_time?: number | undefined
}): { from_time: Date | undefined; to_time: Date | undefined } => {
  if (start_time !== undefined && end_time !== undefined && start_time > end_time)
    throw invalidRequest([
      { field: 'start_time', reason: 'OUT_OF_RANGE', detail: 'Must not be after end_time.' },
    ])
  const time = (seconds: number, ms: number) =>
    new Date(Math.min(seconds, lastSecond - 1) * 1000 + ms)
  return {
    from_time: start_time === undefined ? undefined : time(start_time, 0),
    // The whole second counts.
    to_time: end_time === undefined ? undefined : time(end_time, 999),
  }
}
