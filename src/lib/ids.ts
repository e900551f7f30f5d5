import { randomBytes, randomUUID } from 'node:crypto'

/** Before and after every id, where a walk in the order of ids begins and ends. */
export const lowestId = '00000000-0000-0000-0000-000000000000'
export const highestId = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Chance comes in through this seam, so that tests can repeat a run. */
export type Ids = {
  /** A UUIDv7: sorts in the order of creation within a process, and by the millisecond between processes. */
  uuid(): string
  /** That many random bytes. */
  bytes(size: number): Buffer
}

/**
 * The 12 bits after the time count the ids of a millisecond, from a random beginning (RFC 9562, section 6.2, method 1). Lists
 * are ordered by id, and `randomUUIDv7` of Node leaves the order within a millisecond to chance. 62 random bits remain.
 */
export const createIds = (now: () => number): Ids => {
  let time = 0
  let head = ''
  let count = 0
  const begin = (ms: number): void => {
    const digits = ms.toString(16).padStart(12, '0')
    head = `${digits.slice(0, 8)}-${digits.slice(8)}-`
    time = ms
  }
  return {
    uuid() {
      const random = randomUUID()
      const ms = now()
      if (ms > time) {
        begin(ms)
        // Half of the range, which leaves 2,048 ids and more for this millisecond.
        count = Number.parseInt(random.slice(0, 3), 16) >> 1
      } else if (++count > 0xfff) {
        begin(time + 1)
        count = 0
      }
      // The digit in front is the version.
      return `${head}${(0x7000 + count).toString(16)}-${random.slice(19)}`
    },
    bytes: (size) => randomBytes(size),
  }
}

/** Ids from the machine's own clock and randomness. One for the process, because ids are in order within one. */
export const systemIds: Ids = createIds(Date.now)

/** Whether a text has the form of a UUID; anything else cannot be an id of ours. */
export const isUuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text)
