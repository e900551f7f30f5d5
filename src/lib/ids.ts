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
