// Webhooks of a document. Their ids are made by the service, so a webhook is known by its endpoint and its wallet; where
// two stored ones share both, the document cannot name one of them and is refused.

import { everyPage } from '../local.ts'
import type { ChainHere } from './chain-place.ts'
import type { ChainPart } from './document.ts'
import type { PlannedPart, PlanTools } from './plan-tools.ts'
import { type Call, field, fromTo, type Ref, type Step, sameMembers } from './step.ts'

type WebhookPart = NonNullable<ChainPart['webhooks']>[number]
type StoredWebhook = {
  webhook_id: string
  wallet_id: string
  webhook_endpoint: string
  confirmation: number
  events: readonly string[]
  enabled: boolean
  headers: ReadonlyMap<string, { webhook_header_id: string; header_value: string }>
}

// RegisterWebhook requires a number, so a document without one gets this.
const defaultConfirmation = 10

/** Plans the webhooks of a chain. One is known by its endpoint and its wallet. */
export async function planWebhooks(
  { webhooks }: ChainPart,
  here: ChainHere,
  tools: PlanTools,
  wallets: ReadonlyMap<string, Ref>,
): Promise<PlannedPart> {
  const planned: PlannedPart = { steps: [], extras: [] }
  if (!webhooks) return planned
  const { at, organization, domain } = here
  const stored = await listStored(here, tools)
  const kept = new Set<string>()
  const seen = new Set<string>()
  for (const [index, webhook] of webhooks.entries()) {
    const path = [...here.path, 'webhooks', index]
    const { webhook_endpoint, wallet } = webhook
    const ref = wallet === undefined ? undefined : wallets.get(wallet)
    if (wallet !== undefined && !ref) {
      tools.refuse([...path, 'wallet'], 'is not the name of a wallet on this chain.')
      continue
    }
    // A newline cannot be part of a name or an endpoint, so the two parts cannot be confused.
    const identity = `${wallet ?? ''}\n${webhook_endpoint}`
    if (seen.has(identity))
      tools.refuse([...path, 'webhook_endpoint'], 'has a webhook in the document already.')
    seen.add(identity)
    const same = stored.filter(
      (one) => one.webhook_endpoint === webhook_endpoint && one.wallet_id === (ref ? ref.id : ''),
    )
    if (same.length > 1) {
      tools.refuse(
        [...path, 'webhook_endpoint'],
        `has ${same.length} webhooks already. Remove all but one.`,
      )
      continue
    }
    const own = { ...here, path }
    if (same[0]) {
      kept.add(same[0].webhook_id)
      planned.steps.push(...changeOf(webhook, same[0], own, tools))
    } else planned.steps.push(creationOf(webhook, ref, own, tools))
  }
  for (const { webhook_id, webhook_endpoint } of stored.filter(
    (one) => !kept.has(one.webhook_id),
  )) {
    const subject = nameOf(webhook_endpoint, at)
    if (!tools.prune) planned.extras.push(`${domain}: ${subject}`)
    else
      planned.steps.push({
        ...{ mark: '-', subject, details: [], path: [...here.path, 'webhooks'] },
        calls: [
          {
            where: { at, organization },
            operation: 'RemoveWebhook',
            request: () => ({ webhook_id }),
          },
        ],
      })
  }
  return planned
}

const nameOf = (webhook_endpoint: string, at: string): string =>
  `webhook ${webhook_endpoint} on ${at}`

function creationOf(
  webhook: WebhookPart,
  wallet: Ref | undefined,
  { at, organization, domain, path }: ChainHere,
  tools: PlanTools,
): Step {
  const {
    webhook_endpoint,
    confirmation = defaultConfirmation,
    events,
    enabled,
    headers = {},
  } = webhook
  const where = { at, organization }
  // Filled when the webhook is registered; the later calls of the step read it then.
  const ref: Ref = {}
  const details = [
    field('wallet', webhook.wallet ?? 'all'),
    field('confirmation', confirmation),
    ...(events ? [field('events', events)] : []),
    ...(enabled === false ? [field('enabled', false)] : []),
    ...Object.keys(headers).map((name) => field('header', name)),
  ]
  const calls: Call[] = [
    {
      where,
      operation: 'RegisterWebhook',
      request: () => ({
        webhook_endpoint,
        confirmation,
        ...(wallet && { wallet_id: wallet.id ?? 'new' }),
        ...(events && { events: events.map(longEvent) }),
      }),
      onAnswer: ({ webhook_id }) => {
        ref.id = webhook_id as string
      },
    },
    ...Object.entries(headers).map(([header_key, value]) =>
      headerCall(where, ref, {
        header_key,
        header_value: tools.secret(value, [...path, 'headers', header_key]),
      }),
    ),
    // The secret is shown once, when the webhook is created. Later runs do not read it.
    {
      where,
      operation: 'GetWebhookSigningSecret',
      request: () => ({ webhook_id: ref.id ?? 'new' }),
      onAnswer: ({ signing_secret }) =>
        tools.onSecret({
          ...{ organization: domain, chain: at, webhook: webhook_endpoint },
          signing_secret: signing_secret as string,
        }),
    },
    ...(enabled === false ? [ableCall(where, ref, false)] : []),
  ]
  return { mark: '+', subject: nameOf(webhook_endpoint, at), details, path, calls }
}

function changeOf(
  webhook: WebhookPart,
  stored: StoredWebhook,
  { at, organization, domain: _, path }: ChainHere,
  tools: PlanTools,
): Step[] {
  const { webhook_id } = stored
  const where = { at, organization }
  const ref: Ref = { id: webhook_id }
  const { confirmation, events, enabled, headers } = webhook
  const details: string[] = []
  const change: Record<string, unknown> = {}
  const calls: Call[] = []
  if (confirmation !== undefined && confirmation !== stored.confirmation) {
    details.push(fromTo('confirmation', stored.confirmation, confirmation))
    change.confirmation = confirmation
  }
  if (events && !sameMembers(events, stored.events.map(shortEvent))) {
    details.push(fromTo('events', stored.events.map(shortEvent), events))
    change.events = events.map(longEvent)
  }
  if (details.length > 0)
    calls.push({ where, operation: 'UpdateWebhook', request: () => ({ webhook_id, ...change }) })
  for (const [header_key, value] of Object.entries(headers ?? {})) {
    const header_value = tools.secret(value, [...path, 'headers', header_key])
    const before = stored.headers.get(header_key.toLowerCase())
    if (before?.header_value === header_value) continue
    // Values of headers are secrets: the diff shows that they differ, not what they are.
    details.push(before ? `header ${header_key}: changed` : field('header', header_key))
    calls.push(headerCall(where, ref, { header_key, header_value }))
  }
  // Names of headers have no case in HTTP.
  const wanted = new Set(Object.keys(headers ?? {}).map((name) => name.toLowerCase()))
  // Only where the document has headers: without that key they are not managed.
  for (const [name, { webhook_header_id }] of headers && tools.prune ? stored.headers : []) {
    if (wanted.has(name)) continue
    details.push(`header ${name}: removed`)
    calls.push({ where, operation: 'RemoveWebhookHeader', request: () => ({ webhook_header_id }) })
  }
  if (enabled !== undefined && enabled !== stored.enabled) {
    details.push(fromTo('enabled', stored.enabled, enabled))
    calls.push(ableCall(where, ref, enabled))
  }
  if (calls.length === 0) return []
  return [{ mark: '~', subject: nameOf(webhook.webhook_endpoint, at), details, path, calls }]
}

const headerCall = (
  where: Call['where'],
  ref: Ref,
  header: { header_key: string; header_value: string },
): Call => ({
  where,
  operation: 'RegisterWebhookHeader',
  request: () => ({ webhook_id: ref.id ?? 'new', ...header }),
})

const ableCall = (where: Call['where'], ref: Ref, enabled: boolean): Call => ({
  where,
  operation: enabled ? 'EnableWebhook' : 'DisableWebhook',
  request: () => ({ webhook_id: ref.id ?? 'new' }),
})

async function listStored(
  { at, organization }: ChainHere,
  tools: PlanTools,
): Promise<StoredWebhook[]> {
  if (organization.id === undefined) return []
  const read = tools.read(at, organization.id)
  const all = await everyPage(async (page) => {
    const answer = await read('ListWebhooks', page)
    return { items: answer.webhooks, next: answer.pagination.next_page_token }
  })
  const webhooks: StoredWebhook[] = []
  // One after the other: an organization has few webhooks, and the database may be shared with a
  // running service.
  for (const webhook of all) {
    const { webhook_headers } = await read('ListWebhookHeaders', { webhook_id: webhook.webhook_id })
    const headers = new Map(
      webhook_headers.map(({ webhook_header_id, header_key, header_value }) => [
        header_key.toLowerCase(),
        { webhook_header_id, header_value },
      ]),
    )
    const { events = [] } = webhook as { events?: readonly string[] }
    webhooks.push({ ...webhook, events, headers })
  }
  return webhooks
}

/** An event as operations name it. */
export const longEvent = (event: string): string => `WEBHOOK_EVENT_${event.toUpperCase()}`
/** An event as the document names it. */
export const shortEvent = (event: string): string =>
  event.replace('WEBHOOK_EVENT_', '').toLowerCase()
