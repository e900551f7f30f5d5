// Sinks: brokers that get the events of an organization on a network instead of an endpoint. Handlers use storage
// and the rules for addresses of webhooks. Events are numbered like the notifications of webhooks, in the same
// transactions; `workers/sinks` publishes them.

import { OperationError } from '../../contract/errors/errors.ts'
import { maxSinks } from '../../contract/limits.ts'
import type { WebhookEvent } from '../../contract/records/states.ts'
import { invalidRequest } from '../../contract/validate.ts'
import type { WalletService } from '../../contract/variant.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { isUuid } from '../../lib/ids.ts'
import { createReachable } from '../../lib/net/reachable.ts'
import { subtractUse } from '../../storage/access/quotas.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import { findTurn } from '../../storage/webhooks/notification-events.ts'
import { wakeCouriers } from '../../storage/webhooks/notifications.ts'
import {
  disableSink,
  enableSink,
  insertSink,
  type ListedSink,
  listSinks,
  lockSink,
  removeSink,
  updateSink,
} from '../../storage/webhooks/sinks.ts'
import type { Context, WalletHandler } from '../context.ts'
import { takeQuota } from '../quotas.ts'
import { chainScope, readScope } from '../wallets/scope.ts'
import { checkEvents, presentEvents } from '../webhooks/webhooks.ts'
import {
  checkServers,
  openCredentials,
  type SinkCredentials,
  type SinkSettings,
  sealCredentials,
} from './settings.ts'

/** Publishes the events of all wallets of the organization to a broker. */
export const RegisterSink: WalletHandler<'RegisterSink'> = async (context, request) => {
  const { organization_id, network_id } = await chainScope(context)
  const scope = { organization_id, network_id }
  const { sink_type, confirmation, tls = true, subject_prefix, topic } = request
  const isNats = sink_type === 'SINK_TYPE_NATS'
  checkEvents(context, request.events)
  checkCredentials(isNats, request)
  const settings: SinkSettings = {
    servers: checkServers(request.servers, { tls, rules: rulesOf(context) }),
    tls,
    ...(isNats ? { subject_prefix: subject_prefix ?? 'portolan' } : { topic: topic ?? 'portolan' }),
  }
  const sink_id = context.ids.uuid()
  await context.db.transaction().execute(async (trx) => {
    await insertSink(trx, {
      webhook_id: sink_id,
      ...scope,
      sink: isNats ? 'nats' : 'kafka',
      sink_type,
      settings,
      confirmation,
      events: request.events ?? null,
      secret_sealed: sealCredentials(context.sealer, sink_id, request),
      // Events that are stored and not expanded yet were there before it.
      first_event: (await findTurn(trx, scope)).next_event,
      create_time: new Date(context.clock.now()),
    })
    // The counter of the quota stays locked until the commit, so that two requests do not count past each other.
    await takeQuota({ ...context, db: trx }, organization_id, { quota_name: 'QUOTA_WEBHOOKS' })
    // Counted after the insert and under the lock of the quota, so that the bound is exact.
    const sinks = await listSinks(trx, scope)
    if (sinks.length > maxSinks)
      throw new OperationError('TOO_MANY_SINKS', {
        detail: `The organization has ${maxSinks} sinks on this network already.`,
      })
    await context.record?.(trx, { sink_id })
  })
  return { sink_id }
}

/** Lists sinks in the order of their creation. */
export const ListSinks: WalletHandler<'ListSinks'> = async (context) => {
  const scope = await readScope(context)
  const rows = await listSinks(context.db, scope)
  return { sinks: rows.map((row) => present(context, row, scope.family.service)) }
}

function present({ sealer }: Context, row: ListedSink, service: WalletService) {
  const settings = row.settings as SinkSettings
  return {
    sink_id: row.webhook_id,
    sink_type: row.sink_type,
    servers: settings.servers,
    tls: settings.tls,
    subject_prefix: settings.subject_prefix ?? '',
    topic: settings.topic ?? '',
    username: openCredentials(sealer, row.webhook_id, row.secret_sealed).username ?? '',
    confirmation: row.confirmation,
    events: presentEvents(row, service),
    enabled: row.webhook_state === 'WEBHOOK_STATE_ENABLED',
    disable_reason: row.disable_reason ?? '',
    position: row.position,
    // The next sequence has not been used yet.
    waiting_count: row.next_sequence - 1 - row.position,
    publish_time: row.publish_time && toTimestamp(row.publish_time),
    last_error: row.last_error ?? '',
    create_time: toTimestamp(row.create_time),
  }
}

/** Changes the servers or the credentials of a sink; what is left out stays as it is. */
export const UpdateSink: WalletHandler<'UpdateSink'> = async (context, request) => {
  const scope = await readScope(context)
  await context.db.transaction().execute(async (trx) => {
    const row = await getSink(trx, scope, request.sink_id)
    // Events of the installation name other organizations: a role that may not ask for them may not redirect them.
    checkEvents(context, (row.events as WebhookEvent[] | null) ?? undefined)
    const before = row.settings as SinkSettings
    const tls = request.tls ?? before.tls
    const servers = checkServers(request.servers ?? before.servers, {
      tls,
      rules: rulesOf(context),
    })
    checkCredentials(row.sink_type === 'SINK_TYPE_NATS', request)
    // Credentials are replaced as a whole: a name without its old password must not combine with a
    // new one.
    const hasCredentials =
      request.username !== undefined ||
      request.password !== undefined ||
      request.token !== undefined
    if (!hasCredentials) checkKept(context, row, { before, servers, tls })
    // The type and the subject or topic cannot be changed: readers have a position in what is published there.
    await updateSink(trx, row.webhook_id, {
      settings: { ...before, servers, tls },
      secret_sealed: hasCredentials
        ? sealCredentials(context.sealer, row.webhook_id, request)
        : undefined,
      now: new Date(context.clock.now()),
    })
    await wakeCouriers(trx)
  })
  return {}
}

/** Disables a sink: its events are held back. Repeating it changes nothing. */
export const DisableSink: WalletHandler<'DisableSink'> = async (context, { sink_id }) => {
  const scope = await readScope(context)
  await context.db.transaction().execute(async (trx) => {
    await getSink(trx, scope, sink_id)
    const now = new Date(context.clock.now())
    await disableSink(trx, sink_id, { reason: 'DisableSink was called.', now })
  })
  return {}
}

/** Enables a sink again: it resumes after its position. Repeating it changes nothing. */
export const EnableSink: WalletHandler<'EnableSink'> = async (context, { sink_id }) => {
  const scope = await readScope(context)
  await context.db.transaction().execute(async (trx) => {
    const { webhook_state } = await getSink(trx, scope, sink_id)
    if (webhook_state === 'WEBHOOK_STATE_ENABLED') return
    await enableSink(trx, sink_id, new Date(context.clock.now()))
    await wakeCouriers(trx)
  })
  return {}
}

/** Removes a sink with its events. Repeating it changes nothing. */
export const RemoveSink: WalletHandler<'RemoveSink'> = async (context, { sink_id }) => {
  const scope = await readScope(context)
  await context.db.transaction().execute(async (trx) => {
    // An id that is no UUID would be an error of the database and not a missing sink.
    const row = isUuid(sink_id) && (await lockSink(trx, scope, sink_id))
    if (!row) return
    await removeSink(trx, sink_id, new Date(context.clock.now()))
    await subtractUse(trx, scope.organization_id, [['QUOTA_WEBHOOKS', 1]])
  })
  return {}
}

async function getSink(trx: Db, scope: WalletScope, sink_id: string): Promise<ListedSink> {
  const row = isUuid(sink_id) ? await lockSink(trx, scope, sink_id) : undefined
  if (!row) throw new OperationError('SINK_NOT_FOUND')
  return row
}

/**
 * Stored credentials go where they were given for. A caller that never knew them must not receive them at a server of its
 * own, or read them on the way.
 */
function checkKept(
  { sealer }: Context,
  row: ListedSink,
  { before, servers, tls }: { before: SinkSettings; servers: string[]; tls: boolean },
): void {
  const known = new Set(before.servers)
  const isElsewhere = servers.some((server) => !known.has(server))
  if (!isElsewhere && (tls || !before.tls)) return
  const { password, token } = openCredentials(sealer, row.webhook_id, row.secret_sealed)
  if (password === undefined && token === undefined) return
  const cause = isElsewhere ? 'other servers' : 'a connection without encryption'
  throw invalidRequest([
    {
      field: token === undefined ? 'password' : 'token',
      reason: 'REQUIRED',
      detail: `Give the credentials again with ${cause}: the stored ones are not sent there.`,
    },
  ])
}

function checkCredentials(isNats: boolean, request: SinkCredentials): void {
  const { username, password, token, sasl_mechanism } = request
  const refuse = (field: string, detail: string) => {
    throw invalidRequest([{ field, reason: 'INVALID_FORMAT', detail }])
  }
  if (isNats && sasl_mechanism !== undefined) refuse('sasl_mechanism', 'Is for Kafka only.')
  if (sasl_mechanism !== undefined && username === undefined)
    refuse('sasl_mechanism', 'Needs a user name beside it.')
  if (!isNats && token !== undefined) refuse('token', 'Is for NATS only.')
  if (password !== undefined && username === undefined)
    refuse('password', 'Needs a user name beside it.')
}

const rulesOf = ({ endpoints }: Context) =>
  endpoints ?? { reachable: createReachable(), allowHttp: false }
