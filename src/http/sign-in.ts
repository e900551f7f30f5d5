import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'

/** The one-time link with which the console signs in on a local installation. */
export type SignIn = {
  code: string
  /** The keys, the first time within the life of the code; undefined otherwise. */
  redeem(code: string): object | undefined
}

const lifeMs = 15 * 60_000

/** Makes a code for some keys. Only this process knows it, and one use ends it. */
export function createSignIn(keys: object, { ids, clock }: { ids: Ids; clock: Clock }): SignIn {
  const code = ids.bytes(18).toString('base64url')
  const digestOf = (text: string) => createHash('sha256').update(text).digest()
  const digest = digestOf(code)
  const until = clock.now() + lifeMs
  let isUsed = false
  return {
    code,
    redeem(given) {
      if (isUsed || clock.now() > until || !timingSafeEqual(digestOf(given), digest))
        return undefined
      isUsed = true
      return keys
    },
  }
}
