import { randomBytes, randomUUIDv7 } from 'node:crypto'

/** Chance comes in through this seam, so that tests can repeat a run. */
export type Ids = {
  /** A UUIDv7: sorts by time of creation. */
  uuid(): string
  /** That many random bytes. */
  bytes(size: number): Buffer
}

/** Ids from the machine's own randomness. */
export const systemIds: Ids = { uuid: () => randomUUIDv7(), bytes: (size) => randomBytes(size) }

/** Whether a text has the form of a UUID; anything else cannot be an id of ours. */
export const isUuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text)
