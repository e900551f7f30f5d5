import { createHmac } from 'node:crypto'
import type { Context } from '../context.ts'

/** What a webhook's secret is sealed for. */
export const secretContext = (webhook_id: string): string => `webhook_secret:${webhook_id}`

/** What the value of a header is sealed for. */
export const headerContext = (webhook_header_id: string): string =>
  `webhook_header:${webhook_header_id}`

// Between the 24 and 64 bytes that Standard Webhooks asks for.
const secretBytes = 32

/** Makes a secret and seals it. */
export const createSecret = (
  { ids, sealer }: Pick<Context, 'ids' | 'sealer'>,
  webhook_id: string,
): { secret: Buffer; secret_sealed: Buffer } => {
  const secret = ids.bytes(secretBytes)
  return { secret, secret_sealed: sealer.seal(secret, secretContext(webhook_id)) }
}

/** The form in which libraries of Standard Webhooks take a secret. */
export const formatSecret = (secret: Buffer): string => `whsec_${secret.toString('base64')}`

/** The `webhook-signature` of Standard Webhooks: one `v1,…` for each secret that is in force. */
export const sign = (
  secrets: readonly Buffer[],
  { id, timestamp, body }: { id: string; timestamp: number; body: string | Buffer },
): string =>
  secrets
    .map((secret) => {
      const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body)
      return `v1,${mac.digest('base64')}`
    })
    .join(' ')
