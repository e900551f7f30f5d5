// Event streams over HTTP: `GET /v1/{chain}/events` and `/v1/events`, as Server-Sent Events. It uses access, the hub of
// stored events and live events. It guarantees that a client gets every stored event after its position once and in
// order, that the number of streams and the memory of each are bounded, and that the stream of a revoked key ends.

import { errors, OperationError } from '../../contract/errors/errors.ts'
import { authHeaders } from '../../contract/signature.ts'
import { type Admission, rateLimited } from '../../domain/access/admit.ts'
import { type Authenticator, unauthenticated } from '../../domain/access/authenticate.ts'
import { deny, eventsDenial } from '../../domain/access/authorize.ts'
import type { OperationUsage } from '../../domain/access/operation-usage.ts'
import type { Principal } from '../../domain/access/principal.ts'
import { noteRefusal, type RefusalCounts } from '../../domain/audit/operation.ts'
import type { Installation } from '../../domain/context.ts'
import { openStream } from '../../domain/events/stream.ts'
import { readStreamToken } from '../../domain/events/token.ts'
import { listRevisions } from '../../storage/access/credentials.ts'
import type { Change } from '../../storage/pg/changes.ts'
import type { NetworkName } from '../../storage/tracking/networks.ts'
import {
  findOldestSequence,
  hasSequence,
  listStreamRows,
  type StreamRow,
} from '../../storage/webhooks/streams.ts'
import { liveEvent, storedEvent } from '../../workers/events/event.ts'
import { type EventHub, pageSize } from '../../workers/events/hub.ts'
import type { LiveEvents, ReplacedBlocks } from '../../workers/events/live.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../server.ts'
import { createOpenStreams, type OpenStream } from './open-streams.ts'
import { type EventsRequest, isEventsPath, readEventsRequest, singlePosition } from './request.ts'
import { openSse } from './sse.ts'

/** A network whose events can be streamed. */
export type StreamedNetwork = {
  chain: string
  network: string
  /** As addresses name it: `c` for the default network of a chain, else `base/sepolia`. */
  at: string
  /** Undefined where wallets are not tracked: there are live events only. */
  network_id: number | undefined
}

/** What streams need. */
export type EventStreamsOptions = {
  installation: Pick<Installation, 'db' | 'shareOf' | 'ids' | 'sealer' | 'clock' | 'log'>
  authenticator: Pick<Authenticator, 'authenticate' | 'redeem'>
  admission: Pick<Admission, 'admit'>
  hub: EventHub
  live: LiveEvents
  /** The networks of the installation as they are now. */
  networks(): readonly StreamedNetwork[]
  /** Whether a page of this origin may open a stream with a token. */
  isTrustedOrigin(exchange: Exchange): boolean
  /** Counts the streams that were opened and refused, by key. */
  usage?: Pick<OperationUsage, 'count'> | undefined
  audit?: RefusalCounts | undefined
  limits: { perKey: number; perOrganization: number; maxBytes?: number }
}

/** The open streams of a process. */
export type EventStreams = {
  route: Route
  /** A credential, an organization or the blocks of a tracked network have changed. */
  changed(change: Change): void
  /** Blocks of a network were replaced, as its nodes show it. */
  reorganized(name: NetworkName, blocks: ReplacedBlocks): void
  /** Changes may have been missed: all keys are checked. */
  recheck(): void
  count(): number
  stop(): Promise<void>
}

/** The name of a stream in usage and in the audit log. */
const usageName = 'Events'
// About a thousand usual events. A client that is further behind reads again from its last one.
const defaultMaxBytes = 1_048_576

/** Serves event streams. */
export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const { installation, admission, hub, live, limits } = options
  const { db, clock, log } = installation
  const open = createOpenStreams({ db, clock, log, limits })
  const { authenticate, networksOf } = createStreamAccess(options)
  let overflows = 0

  const handle = async (exchange: Exchange): Promise<void> => {
    const { request, method, path, target, client } = exchange
    if (method !== 'GET')
      throw new OperationError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET' } })
    const asked = readEventsRequest(path, target, request.headers['last-event-id'])
    const service = (asked.isSingle && asked.chains?.[0]?.split('/')[0]) || 'admin'
    let principal: Principal | undefined
    try {
      principal = await authenticate(exchange, asked)
      exchange.facts.principal = principal
      await stream(exchange, asked, principal)
      options.usage?.count(principal, service, usageName, 'done')
    } catch (error) {
      // Refusals by limits are counted apart from failures, as for operations.
      const isRefused = error instanceof OperationError && errors[error.reason].status === 429
      if (principal)
        options.usage?.count(principal, service, usageName, isRefused ? 'refused' : 'failed')
      if (options.audit)
        noteRefusal(options.audit, { principal, client, service, operation: usageName }, error)
      throw error
    }
  }

  const stream = async (
    exchange: Exchange,
    asked: EventsRequest,
    principal: Principal,
  ): Promise<void> => {
    const { response, client: address } = exchange
    const networks = networksOf(asked, principal, address)
    const { organization_id, credential_id } = principal
    const decision = await admission.admit(
      organization_id,
      asked.isSingle ? networks[0]!.chain : 'admin',
    )
    if (!decision.allowed) throw rateLimited(decision)
    // Read before the stream opens, so that any later change of the credential closes it.
    const revision = (await listRevisions(db, [credential_id])).get(credential_id)
    if (revision === undefined) throw unauthenticated()
    // Reads of one organization share its part of the connections.
    const reading = { ...installation, db: installation.shareOf?.(organization_id) ?? db }
    const feeds = await Promise.all(
      networks
        .filter((one) => one.network_id !== undefined)
        .map((one) => openFeed(reading, organization_id, one, asked)),
    )
    // Last, so that nothing is awaited between counting and opening.
    open.checkBounds(principal)
    if (open.isStopped() || response.destroyed)
      throw new OperationError('SHUTTING_DOWN', { retryAfter: 1 })
    const client = openSse(response, {
      maxBytes: limits.maxBytes ?? defaultMaxBytes,
      onOverflow: () => {
        overflows++
        log.debug({ client: address, overflows }, 'event stream closed: the client does not read')
      },
    })
    const leaves: (() => void)[] = []
    // Called by the response, by checks of keys and by a stop; the second call does nothing.
    const close = () => {
      open.remove(entry)
      for (const leave of leaves.splice(0)) leave()
      client.end()
    }
    const webhook_ids = feeds.map(({ webhook_id }) => webhook_id)
    const entry: OpenStream = { principal, revision, client, webhook_ids, close }
    open.add(entry)
    response.once('close', close)
    const wants = (type: string) => asked.types?.has(type) ?? true
    const positions = new Map(feeds.map(({ network, position }) => [network.at, position]))
    // The id of an event is the whole position, so that a client resumes all chains with one value.
    const idOf = () =>
      asked.isSingle
        ? `${positions.get(networks[0]!.at) ?? 0}`
        : [...positions].map(([at, position]) => `${at}=${position}`).join(',')

    for (const feed of feeds) {
      const { network, webhook_id } = feed
      const take = (rows: readonly StreamRow[]) => {
        for (const row of rows) {
          positions.set(network.at, row.sequence)
          const { type, text } = storedEvent(network, row)
          if (wants(type)) client.send({ type, id: idOf(), text })
        }
      }
      // First what was missed, then the hub. Where events arrived in between, `join` refuses and
      // the loop reads on.
      while (client.isOpen()) {
        const after = positions.get(network.at)!
        const rows = await listStreamRows(reading.db, [{ webhook_id, after }], pageSize)
        // One by one: what was missed may be more than a client has room for.
        for (const row of rows) {
          take([row])
          await client.drained()
        }
        // A page ends at its bytes, too: only an empty one is the last.
        if (rows.length > 0) continue
        const leave = hub.join(webhook_id, positions.get(network.at)!, take)
        if (!leave) continue
        leaves.push(leave)
        break
      }
    }
    if (!client.isOpen()) return close()
    const [first] = asked.isSingle ? networks : []
    const name = { chain: first?.chain ?? '', network: first?.network ?? '' }
    // After the replay, so that a client knows from when on events are live.
    client.send({ ...liveEvent('ready', name, new Date(clock.now()), {}), id: idOf() })
    const isCovered = new Set(networks.map(({ chain, network }) => `${chain}/${network}`))
    leaves.push(
      live.join({
        organization_id,
        networks: networks.flatMap((one) =>
          one.network_id === undefined ? [] : [{ ...one, network_id: one.network_id }],
        ),
        covers: ({ chain, network }) => isCovered.has(`${chain}/${network}`),
        isAdmin: principal.role === 'ROLE_ADMIN' && !eventsDenial(principal, 'admin', address),
        wants,
        onEvent: (event) => client.send(event),
      }),
    )
    if (!client.isOpen()) close()
  }

  return {
    route: { path: '/v1/*', name: 'events', matches: ({ path }) => isEventsPath(path), handle },
    changed(change) {
      if (change.kind === 'reorganization') {
        const found = options.networks().find((one) => one.network_id === change.network_id)
        if (found) live.reorganized(found, change)
        return
      }
      open.changed(change)
    },
    reorganized({ chain, network }, blocks) {
      const found = options.networks().find((one) => one.chain === chain && one.network === network)
      // The tracker announces those of tracked networks, once for all processes and with its own rollback.
      if (found?.network_id === undefined) live.reorganized({ chain, network }, blocks)
    },
    recheck: open.recheck,
    count: open.count,
    stop: open.stop,
  }
}

/** Who may open a stream, and of which networks. */
function createStreamAccess(options: EventStreamsOptions) {
  const { authenticator } = options
  const { clock, sealer } = options.installation

  /** Whose stream it is: by a token of the page, or by a signature. */
  const authenticate = async (exchange: Exchange, asked: EventsRequest): Promise<Principal> => {
    const { method, target, client, request } = exchange
    if (asked.token !== undefined) {
      if (!options.isTrustedOrigin(exchange)) throw new OperationError('ORIGIN_NOT_ALLOWED')
      // A token is bound to the address at which it was made.
      const at = asked.isSingle ? asked.chains![0]! : ''
      const token = readStreamToken(sealer, asked.token, { at: nameOf(at), now: clock.now() })
      const principal = token && (await authenticator.redeem(token))
      if (!principal) throw new OperationError('INVALID_STREAM_TOKEN')
      return principal
    }
    const single = (name: string) => {
      const value = request.headers[name]
      return typeof value === 'string' ? value : undefined
    }
    const [api_key, nonce, signature] = [
      single(authHeaders.key),
      single(authHeaders.nonce),
      single(authHeaders.signature),
    ]
    // A repeated header is a list, and counts as missing.
    if (!api_key || !nonce || !signature) throw unauthenticated()
    return await authenticator.authenticate({
      ...{ api_key, nonce, signature, method, path: target, client },
      body: Buffer.alloc(0),
    })
  }

  /** The default network of a chain may be named or not: both are one address. */
  const nameOf = (at: string): string =>
    options.networks().find(({ chain, network }) => `${chain}/${network}` === at)?.at ?? at

  /** The networks that were asked for, or all that are allowed. */
  const networksOf = (asked: EventsRequest, principal: Principal, client: string) => {
    const all = options.networks()
    if (!asked.chains) {
      const allowed = all.filter(({ chain }) => !eventsDenial(principal, chain, client))
      // None is allowed: the reason of the first one is the answer, instead of a stream without
      // events.
      if (all.length > 0 && allowed.length === 0)
        deny(eventsDenial(principal, all[0]!.chain, client))
      return allowed
    }
    return [...new Set(asked.chains.map(nameOf))].map((name) => {
      const found = all.find(({ at }) => at === name)
      if (!found)
        throw new OperationError('ROUTE_NOT_FOUND', {
          detail: `There is no chain or network "${name.slice(0, 64)}" here. There are ${all.map(({ at }) => at).join(', ')}.`,
        })
      deny(eventsDenial(principal, found.chain, client))
      return found
    })
  }

  return { authenticate, networksOf }
}

type Feed = { network: StreamedNetwork; webhook_id: string; position: number }

/** Where a stream begins on a network. What is older than the oldest stored event is gone. */
async function openFeed(
  installation: EventStreamsOptions['installation'],
  organization_id: string,
  network: StreamedNetwork,
  asked: EventsRequest,
): Promise<Feed> {
  const scope = { organization_id, network_id: network.network_id! }
  const { webhook_id, next_sequence } = await openStream(installation, scope)
  const newest = next_sequence - 1
  const after = asked.after.get(asked.isSingle ? singlePosition : network.at)
  if (after === undefined) return { network, webhook_id, position: newest }
  const oldest = (await findOldestSequence(installation.db, webhook_id)) ?? next_sequence
  // Retention removes the oldest ones, and a pause leaves out a number.
  const isNextGone =
    after > 0 && after < newest && !(await hasSequence(installation.db, webhook_id, after + 1))
  if (after > newest || isNextGone)
    throw new OperationError('EVENTS_EXPIRED', {
      detail: `The events of ${network.at} after ${after} are not stored; those from ${oldest} to ${newest} are.`,
      extra: { oldest_sequence: `${oldest}`, newest_sequence: `${newest}` },
    })
  return { network, webhook_id, position: Math.max(after, oldest - 1) }
}
