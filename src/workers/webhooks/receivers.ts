import { LRUCache } from 'lru-cache'
import { userAgent } from '../../domain/webhooks/attempt-headers.ts'
import { headerContext, secretContext, unpackSecrets } from '../../domain/webhooks/secret.ts'
import type { Log } from '../../lib/log.ts'
import type { Sealer } from '../../storage/access/seal.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  listReceiverHeaders,
  listReceivers,
  type ReceiverRow,
} from '../../storage/webhooks/delivery-claims.ts'
import type { WebhookHeaderRow } from '../../storage/webhooks/headers.ts'

/** Where and how to deliver. */
export type Endpoint = {
  webhook_endpoint: string
  is_enabled: boolean
  is_failing: boolean
  /** The newest first; those before it while they still sign. */
  secrets: readonly Buffer[]
  /** Names as registered, and values, in turn. */
  headers: readonly string[]
}

// Sealed values that were opened; unsealing costs a hash and a cipher for each attempt otherwise.
const opened = 10_000

/** Reads receivers as they are now; what was unsealed once is kept, by its sealed form. */
export function createReceivers({ db, sealer, log }: { db: Db; sealer: Sealer; log: Log }) {
  const plain = new LRUCache<string, Buffer>({ max: opened })
  const open = (sealed: Buffer, context: string): Buffer => {
    // The sealed bytes are the key: a changed secret is another entry, and the old one is evicted.
    const key = sealed.toString('latin1')
    const known = plain.get(key)
    if (known) return known
    const value = sealer.open(sealed, context)
    plain.set(key, value)
    return value
  }

  const secretsOf = (row: ReceiverRow, now: number): Buffer[] => {
    const context = secretContext(row.webhook_id)
    const { previous_secret_sealed: previous, previous_secret_expire_time: until } = row
    const earlier = previous ? unpackSecrets(open(previous, context), until) : []
    return [
      open(row.secret_sealed, context),
      ...earlier.filter((known) => known.until > now).map(({ secret }) => secret),
    ]
  }

  const headersOf = (row: ReceiverRow, headers: readonly WebhookHeaderRow[]) => {
    const mine = headers.filter(({ webhook_id }) => webhook_id === row.webhook_id)
    const shared = headers.filter(
      ({ webhook_id, organization_id, network_id }) =>
        webhook_id === null &&
        organization_id === row.organization_id &&
        network_id === row.network_id,
    )
    const byName = new Map<string, WebhookHeaderRow>()
    // In this order: the specific one wins.
    for (const header of [...shared, ...mine]) byName.set(header.header_key.toLowerCase(), header)
    const custom = [...byName.values()].flatMap(
      ({ header_key, header_value_sealed, webhook_header_id }) => [
        header_key,
        open(header_value_sealed, headerContext(webhook_header_id)).toString('utf8'),
      ],
    )
    // Spelled otherwise, theirs would go out beside ours.
    return byName.has('user-agent') ? custom : ['user-agent', userAgent, ...custom]
  }

  return {
    load: async (webhook_ids: readonly string[], now: number): Promise<Map<string, Endpoint>> => {
      const [rows, headers] = await Promise.all([
        listReceivers(db, webhook_ids),
        listReceiverHeaders(db, webhook_ids),
      ])
      const found = new Map<string, Endpoint>()
      for (const row of rows) {
        try {
          found.set(row.webhook_id, {
            webhook_endpoint: row.webhook_endpoint,
            is_enabled: row.webhook_state === 'WEBHOOK_STATE_ENABLED',
            is_failing: row.failing_since !== null,
            secrets: secretsOf(row, now),
            headers: headersOf(row, headers),
          })
        } catch (error) {
          // One that cannot be opened must not keep the others from being served.
          log.error(
            { err: error, webhook_id: row.webhook_id },
            'webhook secrets cannot be decrypted',
          )
        }
      }
      return found
    },
  }
}
