// The operations on webhooks, their headers, secrets and deliveries. They use storage. Endpoints are checked
// against the rules of the operator before they are stored.

import { OperationError } from '../../contract/errors/errors.ts'
import {
  defaultWebhookEvents,
  notificationTypes,
  type WebhookEvent,
  webhookEventsOf,
} from '../../contract/records/states.ts'
import { invalidRequest } from '../../contract/validate.ts'
import type { WalletService } from '../../contract/variant.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { isUuid } from '../../lib/ids.ts'
import { checkEndpoint } from '../../lib/net/endpoint.ts'
import { createReachable } from '../../lib/net/reachable.ts'
import { subtractUse } from '../../storage/access/quotas.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import { holdWallet } from '../../storage/wallets/wallets.ts'
import {
  type EarlierEvents,
  findPendingOrganizations,
} from '../../storage/webhooks/event-queues.ts'
import { findTurn } from '../../storage/webhooks/notification-events.ts'
import { queueNotifications, wakeCouriers } from '../../storage/webhooks/notifications.ts'
import {
  endQueue,
  holdQueue,
  releaseQueue,
  restartQueue,
} from '../../storage/webhooks/queue-pages.ts'
import {
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  findWebhook,
  forgetFailures,
  insertWebhook,
  type ListedWebhook,
  listWebhooks,
  lockWebhook,
  postponeDeliveries,
  updateWebhook,
  type WebhookRow,
} from '../../storage/webhooks/webhooks.ts'
import { inBulkTurn } from '../bulk.ts'
import type { Context, WalletHandler } from '../context.ts'
import { inPages, pageRows } from '../in-pages.ts'
import { makePage, readPage } from '../pages.ts'
import { takeQuota } from '../quotas.ts'
import { chainScope, getWallet, readScope } from '../wallets/scope.ts'
import { getWebhookToChange, getWebhookToSend } from './get-webhook.ts'
import { inQueuePages } from './queue-pages.ts'
import { createSecret } from './secret.ts'

/** Notifies an endpoint of what happens to a wallet, or to all. */
export const RegisterWebhook: WalletHandler<'RegisterWebhook'> = async (context, request) => {
  const { organization_id, network_id } = await chainScope(context)
  const { webhook_endpoint, confirmation } = request
  check(context, webhook_endpoint)
  checkEvents(context, request.events)
  const scope = { organization_id, network_id }
  const wallet = request.wallet_id ? await getWallet(context, scope, request.wallet_id) : undefined
  // Made before the transaction: the secret is sealed for it.
  const webhook_id = context.ids.uuid()
  await context.db.transaction().execute(async (trx) => {
    // Removed since it was looked up: the webhook would stay behind.
    if (wallet && !(await holdWallet(trx, wallet.wallet_id)))
      throw new OperationError('WALLET_NOT_FOUND')
    await insertWebhook(trx, {
      webhook_id,
      ...scope,
      wallet_id: wallet?.wallet_id ?? null,
      webhook_endpoint,
      confirmation,
      events: request.events ?? null,
      secret_sealed: createSecret(context, webhook_id).secret_sealed,
      // Events that are stored and not expanded yet were there before it.
      first_event: (await findTurn(trx, scope)).next_event,
      create_time: new Date(context.clock.now()),
    })
    await takeQuota({ ...context, db: trx }, organization_id, { quota_name: 'QUOTA_WEBHOOKS' })
    await context.record?.(trx, { webhook_id })
  })
  return { webhook_id }
}

/** Changes a webhook; what is left out stays as it is. */
export const UpdateWebhook: WalletHandler<'UpdateWebhook'> = async (
  context,
  { webhook_id, webhook_endpoint, confirmation, events },
) => {
  const scope = await readScope(context)
  if (webhook_endpoint !== undefined) check(context, webhook_endpoint)
  checkEvents(context, events)
  const now = new Date(context.clock.now())
  /** Says whether more of its queue waits for its next attempt. */
  const update = async (trx: Db, row: WebhookRow, update_time: Date): Promise<boolean> => {
    // A role that may not ask for these events may not redirect them either; those that wait would go along.
    checkEvents(context, row.events ?? undefined)
    await updateWebhook(trx, webhook_id, {
      ...(webhook_endpoint !== undefined && { webhook_endpoint }),
      ...(events && { events, earlier_events: await keepEvents(trx, scope, row, now) }),
      update_time,
    })
    // The pauses belong to the old endpoint: a new one is tried at once.
    if (webhook_endpoint === undefined || webhook_endpoint === row.webhook_endpoint) return false
    await forgetFailures(trx, webhook_id)
    await wakeCouriers(trx)
    return await restartQueue(trx, webhook_id, now)
  }
  let isMore = false
  if (confirmation === undefined)
    isMore = await inBulkTurn(context, async (trx) => {
      const row = await getWebhookToChange(trx, scope, webhook_id)
      return await update(trx, row, nextTime(row, now))
    })
  // No block is stored during a page: what it noted would wait for the old number.
  else
    await inPages<Postponing>(context, scope.network_id, async (trx, _head, before) => {
      if (before) {
        const row = await lockWebhook(trx, scope, webhook_id)
        return row && (await continuePostponing(trx, row, before))
      }
      const row = await getWebhookToChange(trx, scope, webhook_id)
      const update_time = nextTime(row, now)
      isMore = await update(trx, row, update_time)
      return await beginPostponing(trx, row, { confirmation, update_time })
    })
  if (isMore)
    await inQueuePages(context, { scope, webhook_id, isOptional: true, isBegun: true }, (trx) =>
      restartQueue(trx, webhook_id, now),
    )
  return {}
}

/** Every change has a time of its own, also two in the same millisecond. */
const nextTime = ({ update_time }: WebhookRow, now: Date): Date =>
  new Date(Math.max(now.getTime(), update_time.getTime() + 1))

/** How far the notifications of a webhook wait for another number of confirmations. */
type Postponing = {
  confirmation: number
  isFewer: boolean
  /** The block that the last page ended with. */
  after: number | undefined
  /** When the number was asked for. */
  update_time: Date
}

/**
 * The first page. Blocks between two pages wait for more than what was stored before them, so more confirmations are stored with the
 * first page and fewer with the last one.
 */
async function beginPostponing(
  trx: Db,
  row: WebhookRow,
  { confirmation, update_time }: Pick<Postponing, 'confirmation' | 'update_time'>,
): Promise<Postponing | undefined> {
  const isFewer = confirmation < row.confirmation
  await updateWebhook(trx, row.webhook_id, {
    next_confirmation: confirmation,
    ...(!isFewer && { confirmation }),
  })
  return await postponePage(trx, row, { confirmation, isFewer, after: undefined, update_time })
}

/** A page after the first one, of the number that was asked for last. */
async function continuePostponing(
  trx: Db,
  row: WebhookRow,
  before: Postponing,
): Promise<Postponing | undefined> {
  const { next_confirmation: confirmation, update_time } = row
  // Another call has done the rest.
  if (confirmation === null) return undefined
  // Nothing was changed since the last page.
  if (update_time.getTime() === before.update_time.getTime())
    return await postponePage(trx, row, before)
  // All calls begin again, although the number may be the same: one in between may have written another one behind the page.
  const isFewer = confirmation < row.confirmation
  return await postponePage(trx, row, { confirmation, isFewer, after: undefined, update_time })
}

async function postponePage(
  trx: Db,
  row: Pick<WebhookRow, 'webhook_id'>,
  page: Postponing,
): Promise<Postponing | undefined> {
  const { webhook_id } = row
  const { confirmation, isFewer, after } = page
  const edge = await postponeDeliveries(trx, webhook_id, { ...page, limit: pageRows })
  if (edge !== undefined) return { ...page, after: edge }
  // What a backfill, or blocks that came instead of others, noted behind the pages waits for the old number. From now on all is
  // noted with the new one, so that one more time through all of them, now from the last block on, is enough.
  const isAgain = isFewer && after !== undefined
  await updateWebhook(trx, webhook_id, {
    confirmation,
    ...(!isAgain && { next_confirmation: null }),
  })
  return isAgain
    ? await postponePage(trx, row, { ...page, isFewer: false, after: undefined })
    : undefined
}

// Changed more often while events wait to be expanded, the oldest settings are joined.
const mostEarlier = 20

/** What the webhook notified of until now, for events that are stored and not expanded yet. */
async function keepEvents(
  trx: Db,
  scope: WalletScope,
  row: WebhookRow,
  now: Date,
): Promise<string | null> {
  const { organization_id, network_id } = scope
  const { next_event, isPending } = await findTurn(trx, scope)
  const hasStates = async () =>
    (await findPendingOrganizations(trx, 'state_event', network_id, [organization_id])).size > 0
  if (!isPending && !(await hasStates())) return null
  const known = (row.earlier_events ?? []) as EarlierEvents
  const list: EarlierEvents = [
    ...known,
    { until: next_event, until_time: now.toISOString(), events: row.events },
  ]
  while (list.length > mostEarlier) {
    // The union notifies of more rather than less: a receiver ignores what it does not want.
    const [first, second] = list.splice(0, 2)
    const both = [first!, second!].map((one) => one.events ?? defaultWebhookEvents)
    list.unshift({ ...second!, events: [...new Set(both.flat())] })
  }
  return JSON.stringify(list)
}

function check(context: Context, webhook_endpoint: string): void {
  const rules = context.endpoints ?? { reachable: createReachable(), allowHttp: false }
  // Addresses inside of the operator's network are refused here with a reason. The courier checks the address that a name
  // resolves to at each attempt: it may change after this.
  const { problem } = checkEndpoint(webhook_endpoint, rules)
  if (problem !== undefined)
    throw invalidRequest([
      { field: 'webhook_endpoint', reason: 'INVALID_ENDPOINT', detail: problem },
    ])
}

/** Events of the installation name other organizations. */
export function checkEvents(
  { principal }: Context,
  events: readonly WebhookEvent[] | undefined,
): void {
  if (!events?.includes('WEBHOOK_EVENT_INSTALLATION') || principal.role === 'ROLE_ADMIN') return
  throw new OperationError('PERMISSION_DENIED', {
    detail: `WEBHOOK_EVENT_INSTALLATION needs ROLE_ADMIN; this credential has ${principal.role}.`,
    extra: { missing: 'ROLE_ADMIN' },
  })
}

/** Removes a webhook with its headers; its history stays. Repeating it changes nothing. */
export const RemoveWebhook: WalletHandler<'RemoveWebhook'> = async (context, { webhook_id }) => {
  const scope = await readScope(context)
  const row = isUuid(webhook_id) && (await findWebhook(context.db, scope, webhook_id))
  if (!row) return {}
  // Locked with its row, so that a courier that records an attempt waits and then finds it gone.
  await inQueuePages(context, { scope, webhook_id, isOptional: true }, async (trx) => {
    if ((await endQueue(trx, webhook_id)).isMore) return true
    const headers = await deleteWebhook(trx, webhook_id)
    await subtractUse(trx, scope.organization_id, [
      ['QUOTA_WEBHOOKS', 1],
      ['QUOTA_WEBHOOK_HEADERS', headers],
    ])
    return false
  })
  return {}
}

/** Lists webhooks in the order of their creation. */
export const ListWebhooks: WalletHandler<'ListWebhooks'> = async (context, request) => {
  const scope = await readScope(context)
  const { limit, after } = readPage<string>(context, request)
  const wallet_id =
    request.wallet_id && (await getWallet(context, scope, request.wallet_id)).wallet_id
  const { webhook_id } = request
  const rows =
    webhook_id === undefined || isUuid(webhook_id)
      ? await listWebhooks(context.db, scope, { wallet_id, webhook_id, after, limit: limit + 1 })
      : []
  const { items, pagination } = makePage(context, request, rows, (row) => row.webhook_id)
  return { webhooks: items.map((row) => present(row, scope.family.service)), pagination }
}

/** What a webhook or a sink notifies of. */
export const presentEvents = (
  { events }: Pick<ListedWebhook, 'events'>,
  service: WalletService,
): WebhookEvent[] =>
  webhookEventsOf[service].filter((event) => (events ?? defaultWebhookEvents).includes(event))

const present = (row: ListedWebhook, service: WalletService) => ({
  webhook_id: row.webhook_id,
  wallet_id: row.wallet_id ?? '',
  webhook_endpoint: row.webhook_endpoint,
  confirmation: row.confirmation,
  events: presentEvents(row, service),
  enabled: row.webhook_state === 'WEBHOOK_STATE_ENABLED',
  disable_reason: row.disable_reason ?? '',
  success_rate: row.success_rate,
  last_error: row.last_error ?? '',
  failed_count: row.failed_count,
  create_time: toTimestamp(row.create_time),
})

/** Disables a webhook: its notifications are held back. Repeating it changes nothing. */
export const DisableWebhook: WalletHandler<'DisableWebhook'> = async (context, { webhook_id }) => {
  const scope = await readScope(context)
  const now = new Date(context.clock.now())
  await inQueuePages(context, { scope, webhook_id }, async (trx, row, isFirst) => {
    if (isFirst)
      await disableWebhook(trx, webhook_id, { reason: 'DisableWebhook was called.', now })
    // Enabled again between two pages: the rest is for its endpoint.
    else if (row.webhook_state === 'WEBHOOK_STATE_ENABLED') return false
    return await holdQueue(trx, webhook_id)
  })
  return {}
}

/** Enables a webhook again: it resumes with the first undelivered notification. Repeating it changes nothing. */
export const EnableWebhook: WalletHandler<'EnableWebhook'> = async (context, { webhook_id }) => {
  const scope = await readScope(context)
  await inQueuePages(context, { scope, webhook_id }, async (trx, row) => {
    if (row.webhook_state === 'WEBHOOK_STATE_ENABLED') return false
    // First what a courier has not held back yet since the webhook was disabled: it has its place among the others.
    const isNew = row.update_time.getTime() === row.disable_time?.getTime()
    if (isNew && (await holdQueue(trx, webhook_id))) return true
    const now = new Date(context.clock.now())
    if (await releaseQueue(trx, webhook_id, now)) return true
    await enableWebhook(trx, webhook_id, now)
    await wakeCouriers(trx)
    return false
  })
  return {}
}

/** Queues a test notification without transfers, signed and numbered like any other. */
export const SendTestWebhook: WalletHandler<'SendTestWebhook'> = async (
  context,
  { webhook_id },
) => {
  const { organization_id, network_id, family } = await readScope(context)
  return await context.db.transaction().execute(async (trx) => {
    // A disabled webhook is refused: a test that is held back would look like a failure.
    await getWebhookToSend(trx, { organization_id, network_id }, webhook_id)
    const notification = {
      organization_id,
      network_id,
      webhook_id,
      notification_type: notificationTypes[family.service],
      data: { test: true, [family.transactionField]: '', confirmations: 0, transfers: [] },
    }
    const now = new Date(context.clock.now())
    const [webhook_history_id] = await queueNotifications(trx, [notification], now)
    if (!webhook_history_id) throw new OperationError('WEBHOOK_NOT_FOUND')
    const answer = { webhook_history_id }
    await context.record?.(trx, answer)
    return answer
  })
}
