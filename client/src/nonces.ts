/** A nonce, and which reading of the server's clock it was made with. */
export type Nonce = { text: string; sync: number }

/** Makes the nonces of one client. */
export type Nonces = {
  /** The next one: Unix time in microseconds, 16 digits, greater than every one before. */
  next(): Nonce
  /** Follows the server's clock after it refused `nonce` as too far from its own. */
  follow(nonce: Nonce, serverTime: number): void
}

/**
 * Nonces from a millisecond clock. The microseconds begin at a random place, so that two processes
 * with the same key hardly ever meet.
 */
export function createNonces(now: () => number, random: () => number = Math.random): Nonces {
  let last = 0
  let offset = 0
  let sync = 0
  return {
    next: () => {
      const time = Math.floor(now() + offset) * 1000 + Math.floor(random() * 1000)
      last = Math.max(last + 1, time)
      return { text: String(last).padStart(16, '0'), sync }
    },
    follow: (nonce, serverTime) => {
      // Calls in parallel are refused together; only the first may set the clock back, or the
      // others would hand out its nonces once more.
      if (nonce.sync !== sync) return
      sync++
      offset = serverTime - now()
      last = 0
    },
  }
}
