import { keyOf } from '../../lib/bytes.ts'
import type { FanOutLimits } from '../../storage/webhooks/fan-out-limits.ts'

/** What a transfer says of its transaction. */
type Seen = {
  organization_id: string
  wallet_id: string
  transaction_hash: Buffer
  block_number: number
}

/** How the notifications of a transaction are named and placed. */
export type Described = { block_number: number; key: (string | Buffer)[]; data?: object }

/** A transaction of which an organization is notified, with its wallets that want it. */
export type Noted<event> = {
  event: event
  block_number: number
  event_key: string[]
  data: object | undefined
  wallet_ids: Set<string>
}

/** The webhooks of a wallet by its id, or those of all wallets by the id of the organization. */
type WebhooksOf<webhook> = (id: string) => readonly webhook[]

/** Each transaction of some transfers of one organization once, if a webhook wants it; it is described once too. */
export function noteOnce<event extends Seen>(
  events: readonly event[],
  webhooksOf: WebhooksOf<unknown>,
  describe: (event: event) => Described,
): Noted<event>[] {
  const places = new Map<string, Noted<event>>()
  const noted = new Map<string, Noted<event>>()
  for (const event of events) {
    const { organization_id, wallet_id, transaction_hash } = event
    if (webhooksOf(organization_id).length === 0 && webhooksOf(wallet_id).length === 0) continue
    const place = `${event.block_number}/${keyOf(transaction_hash)}`
    const known = places.get(place)
    if (known) {
      known.wallet_ids.add(wallet_id)
      continue
    }
    const { block_number, key, data } = describe(event)
    const event_key = key.map((part) => Buffer.from(part).toString('hex'))
    const name = event_key.join()
    const one = noted.get(name) ?? { event, block_number, event_key, data, wallet_ids: new Set() }
    one.wallet_ids.add(wallet_id)
    noted.set(name, one)
    places.set(place, one)
  }
  return [...noted.values()]
}

/**
 * Each of these transactions with each webhook that wants it; undefined where there are more than are written at once.
 * `most` is the longest list of webhooks that is known to be complete.
 */
export function pairAtOnce<event extends Seen, webhook>(
  noted: readonly Noted<event>[],
  webhooksOf: WebhooksOf<webhook>,
  { limits, most }: { limits: FanOutLimits; most: number },
): { one: Noted<event>; webhook: webhook }[] | undefined {
  const limit = Math.max(limits.inline, limits.perEvent * noted.length)
  // A webhook is of one wallet or of all of them: none is met twice.
  const listsOf = ({ event, wallet_ids }: Noted<event>) =>
    [event.organization_id, ...wallet_ids].map(webhooksOf)
  // Counted first, because nothing is written of what is too much.
  let count = 0
  for (const one of noted)
    for (const { length } of listsOf(one)) {
      count += length
      if (length > most || count > limit) return undefined
    }
  return noted.flatMap((one) =>
    listsOf(one).flatMap((webhooks) => webhooks.map((webhook) => ({ one, webhook }))),
  )
}
