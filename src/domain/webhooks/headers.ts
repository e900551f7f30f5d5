import { type FieldError, OperationError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { isUuid } from '../../lib/ids.ts'
import { subtractUse } from '../../storage/access/quotas.ts'
import {
  deleteWebhookHeader,
  findWebhookHeader,
  insertWebhookHeader,
  listWebhookHeaders,
  lockSharedHeaders,
  setWebhookHeader,
} from '../../storage/webhooks/headers.ts'
import type { WalletHandler } from '../context.ts'
import { takeQuota } from '../quotas.ts'
import { chainScope, readScope } from '../wallets/scope.ts'
import { getWebhook, getWebhookToChange } from './get-webhook.ts'
import { headerContext } from './secret.ts'

// Receivers refuse requests whose headers are much larger.
const maxHeaders = 50

/** Lists the headers of a webhook, or those of all webhooks. */
export const ListWebhookHeaders: WalletHandler<'ListWebhookHeaders'> = async (context, request) => {
  const scope = await readScope(context)
  const webhook = request.webhook_id && (await getWebhook(context.db, scope, request.webhook_id))
  const rows = await listWebhookHeaders(context.db, scope, webhook ? webhook.webhook_id : null)
  return {
    webhook_headers: rows.map((row) => ({
      webhook_header_id: row.webhook_header_id,
      webhook_id: row.webhook_id ?? '',
      header_key: row.header_key,
      header_value: context.sealer
        .open(row.header_value_sealed, headerContext(row.webhook_header_id))
        .toString('utf8'),
    })),
  }
}

/** Attaches a header to the deliveries of a webhook, or of all. The same key again changes its value. */
export const RegisterWebhookHeader: WalletHandler<'RegisterWebhookHeader'> = async (
  context,
  request,
) => {
  const { organization_id, network_id } = await chainScope(context)
  const scope = { organization_id, network_id }
  const { header_key, header_value } = request
  const problems = checkHeader(header_key, header_value)
  if (problems.length > 0) throw invalidRequest(problems)
  const webhook_id = request.webhook_id ?? null
  // The id is part of the seal, so the value cannot be moved to another header.
  const seal = (id: string) => context.sealer.seal(header_value, headerContext(id))
  return await context.db.transaction().execute(async (trx) => {
    // One at a time, or many at once would be more than there can be.
    if (webhook_id) await getWebhookToChange(trx, scope, webhook_id)
    else await lockSharedHeaders(trx, scope)
    const fresh = context.ids.uuid()
    const inserted = await insertWebhookHeader(trx, {
      webhook_header_id: fresh,
      ...scope,
      webhook_id,
      header_key,
      header_value_sealed: seal(fresh),
      create_time: new Date(context.clock.now()),
    })
    if (inserted) {
      // Counted after the insert, under the lock that was taken above.
      if ((await listWebhookHeaders(trx, scope, webhook_id)).length > maxHeaders)
        throw invalidRequest([
          {
            field: 'header_key',
            reason: 'TOO_MANY',
            detail: `There can be ${maxHeaders} headers of a webhook, and as many of all.`,
          },
        ])
      const quota_name = 'QUOTA_WEBHOOK_HEADERS'
      await takeQuota({ ...context, db: trx }, organization_id, { quota_name })
      await context.record?.(trx, { webhook_header_id: fresh })
      return { webhook_header_id: fresh }
    }
    const known = await findWebhookHeader(trx, scope, { webhook_id, header_key })
    // Removed between the two statements.
    if (!known) throw new OperationError('WEBHOOK_HEADER_NOT_FOUND')
    const { webhook_header_id } = known
    const header_value_sealed = seal(webhook_header_id)
    await setWebhookHeader(trx, { webhook_header_id, header_key, header_value_sealed })
    await context.record?.(trx, { webhook_header_id })
    return { webhook_header_id }
  })
}

/** Removes a header. Repeating it changes nothing. */
export const RemoveWebhookHeader: WalletHandler<'RemoveWebhookHeader'> = async (
  context,
  { webhook_header_id },
) => {
  const scope = await readScope(context)
  if (!isUuid(webhook_header_id)) return {}
  await context.db.transaction().execute(async (trx) => {
    const isGone = await deleteWebhookHeader(trx, scope, webhook_header_id)
    if (isGone) await subtractUse(trx, scope.organization_id, [['QUOTA_WEBHOOK_HEADERS', 1]])
  })
  return {}
}

// What the connection or the signature is made of, and what describes the body.
const reserved = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
])
const reservedPrefixes = ['proxy-', 'webhook-', 'x-forwarded-', 'sec-']

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// Spaces at the ends would be lost on the way; anything else than ASCII is read differently everywhere.
const text = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/

/** What is wrong with a header that a user wants to be sent; nothing when it can be. */
const checkHeader = (header_key: string, header_value: string): FieldError[] => {
  const errors: FieldError[] = []
  const refuse = (field: string, detail: string) =>
    errors.push({ field, reason: 'INVALID_HEADER', detail })
  const name = header_key.toLowerCase()
  if (!token.test(header_key)) refuse('header_key', 'Is not the name of an HTTP header.')
  else if (reserved.has(name) || reservedPrefixes.some((prefix) => name.startsWith(prefix)))
    refuse('header_key', 'Is a header that the delivery itself sets.')
  if (!text.test(header_value))
    refuse('header_value', 'Must be printable ASCII, without spaces at its ends.')
  return errors
}
