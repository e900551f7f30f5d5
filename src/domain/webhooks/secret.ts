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

/** A secret that signs beside the newest one, until a time. */
export type EarlierSecret = { secret: Buffer; until: number }

const timeBytes = 8

/** Earlier secrets as the one value that is sealed. */
export const packSecrets = (earlier: readonly EarlierSecret[]): Buffer =>
  Buffer.concat(
    earlier.flatMap(({ secret, until }) => {
      const time = Buffer.alloc(timeBytes)
      time.writeBigUInt64BE(BigInt(until))
      return [secret, time]
    }),
  )

/** The earlier secrets in a value that was sealed; one alone without a time has that of its row. */
export const unpackSecrets = (packed: Buffer, until: Date | null): EarlierSecret[] => {
  if (packed.length === secretBytes) return [{ secret: packed, until: until?.getTime() ?? 0 }]
  const length = secretBytes + timeBytes
  return Array.from({ length: Math.floor(packed.length / length) }, (_, index) => {
    const part = packed.subarray(index * length, (index + 1) * length)
    const time = Number(part.readBigUInt64BE(secretBytes))
    return { secret: part.subarray(0, secretBytes), until: time }
  })
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
