/** What a node can do wrong on purpose. */
export type FaultKind =
  /** Is not there, as an API that a node does not offer. */
  | '404'
  /** Too many requests. */
  | '429'
  | '500'
  /** Never answers. */
  | 'timeout'
  /** Breaks the connection off. */
  | 'reset'
  /** Shows an old head, though it has newer blocks. */
  | 'stale'
  /** Has not got the newest blocks. */
  | 'lag'
  /** Has deleted all but its newest blocks. */
  | 'pruned'
  /** Gives transactions that are not those of their hashes. */
  | 'wrong_hash'

/** One thing that goes wrong. */
export type Fault = {
  kind: FaultKind
  /** Of this method only; `v3` means all of API v3. */
  method?: string
  /** How often; without it for ever. */
  times?: number
  /** How likely; 1 without it. */
  probability?: number
  /** Sent as `Retry-After` with `429`. */
  retryAfterSeconds?: number
  /** Blocks behind, for `stale` and `lag`; blocks that are kept, for `pruned`. */
  blocks?: number
}

/** The faults of one endpoint. */
export type Faults = {
  add(fault: Fault): void
  clear(): void
  /** The fault that this call meets, if any; counts it. */
  meet(kinds: readonly FaultKind[], method: string): Fault | undefined
}

/** An endpoint's faults; `random` decides which of the likely ones happen. */
export function createFaults(random: () => number): Faults {
  let faults: Fault[] = []
  return {
    add: (fault) => void faults.push({ ...fault }),
    clear: () => {
      faults = []
    },
    meet: (kinds, method) => {
      const met = faults.find(
        (fault) =>
          kinds.includes(fault.kind) &&
          (fault.method === undefined || fault.method === method) &&
          (fault.probability === undefined || random() < fault.probability),
      )
      if (met?.times !== undefined && --met.times <= 0)
        faults = faults.filter((fault) => fault !== met)
      return met
    },
  }
}

/** Numbers between 0 and 1 that are the same for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
