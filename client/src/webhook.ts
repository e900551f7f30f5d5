import type { Notification } from './notification.ts'
import { hmacKey, signedBytes } from './sign.ts'
import { WebhookError } from './webhook-error.ts'

/** What {@link verifyWebhook} takes. */
export type WebhookDelivery = {
  /** The signing secret, `whsec_…`; several where more than one may have signed. */
  secret: string | readonly string[]
  /** The headers as fetch or node:http give them. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** The raw body: parsing and printing it again breaks the signature. */
  body: string | Uint8Array
  /** How old or how far ahead a delivery may be; 300 unless given. */
  tolerance_seconds?: number
  /** The current time in milliseconds; Date.now unless given. */
  now?: () => number
}

/**
 * Checks a delivery as the Standard Webhooks specification says, and returns its parsed body.
 * Throws a {@link WebhookError} when it is not genuine: answer 400 or 401 then.
 *
 * @example
 * const notification = await verifyWebhook({ secret, headers: request.headers, body: await request.text() })
 * if (notification.notification_type === 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED') …
 */
export async function verifyWebhook(delivery: WebhookDelivery): Promise<Notification> {
  const { tolerance_seconds = 300, now = Date.now } = delivery
  const id = header(delivery, 'webhook-id')
  const timestamp = header(delivery, 'webhook-timestamp')
  const signatures = header(delivery, 'webhook-signature')
  checkTime(timestamp, now() / 1000, tolerance_seconds)
  const body = typeof delivery.body === 'string' ? encoder.encode(delivery.body) : delivery.body
  const message = signedBytes(`${id}.${timestamp}.`, body)
  if (!(await isSigned(message, signatures, [delivery.secret].flat())))
    throw new WebhookError('SIGNATURE_MISMATCH', 'No signature of the delivery fits the secret.')
  try {
    return JSON.parse(decoder.decode(body))
  } catch {
    throw new WebhookError('INVALID_BODY', 'The body is signed, but it is not JSON.')
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

function header({ headers }: WebhookDelivery, name: string): string {
  const value = isHeaders(headers)
    ? headers.get(name)
    : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  const text = typeof value === 'object' ? value?.join(' ') : value
  if (!text) throw new WebhookError('MISSING_HEADER', `The header ${name} is missing.`)
  return text
}

// Not instanceof: frameworks bring Headers of their own.
const isHeaders = (headers: WebhookDelivery['headers']): headers is Headers =>
  typeof headers.get === 'function'

function checkTime(timestamp: string, now: number, tolerance: number): void {
  if (!/^\d{1,15}$/.test(timestamp))
    throw new WebhookError('INVALID_TIMESTAMP', 'webhook-timestamp is not Unix time in seconds.')
  const age = now - Number(timestamp)
  if (age > tolerance)
    throw new WebhookError('TOO_OLD', `The delivery is ${Math.round(age)} seconds old.`)
  if (age < -tolerance)
    throw new WebhookError('TOO_NEW', `The delivery is ${Math.round(-age)} seconds ahead.`)
}

async function isSigned(
  message: Uint8Array<ArrayBuffer>,
  header: string,
  secrets: readonly string[],
): Promise<boolean> {
  const keys = await Promise.all(secrets.map((secret) => hmacKey(secretBytes(secret))))
  const signatures = header
    .split(' ')
    .filter((entry) => entry.startsWith('v1,'))
    .map((entry) => fromBase64(entry.slice(3)))
    .filter((bytes) => bytes !== undefined)
  // WebCrypto compares in constant time (its specification demands it for HMAC).
  const checks = keys.flatMap((key) =>
    signatures.map((signature) => crypto.subtle.verify('HMAC', key, signature, message)),
  )
  return (await Promise.all(checks)).includes(true)
}

function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const bytes = fromBase64(secret.replace(/^whsec_/, ''))
  if (!bytes?.length)
    throw new WebhookError('INVALID_SECRET', 'The secret is not whsec_ and base64.')
  return bytes
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
  } catch {
    return undefined
  }
}
