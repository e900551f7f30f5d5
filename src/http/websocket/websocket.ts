// WebSockets of the gateway: handshake, connections, and a bounded outbox per client. It uses the gateway. A
// slow client is disconnected; it never delays another one.

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { Reason } from '../../contract/errors/errors.ts'
import { gatewayDenial } from '../../domain/access/authorize.ts'
import type { GatewayKeys } from '../../domain/access/gateway-keys.ts'
import type { Principal } from '../../domain/access/principal.ts'
import { noteGatewayRefusal, type RefusalCounts } from '../../domain/audit/operation.ts'
import type { Network } from '../../gateway/network.ts'
import { type Refusal, refusalOf, refuse } from '../../gateway/rpc/rpc-error.ts'
import type { Serve } from '../../gateway/rpc/serve.ts'
import type { Streams } from '../../gateway/streams/feed-streams.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { WebSocketClient } from '../../storage/metrics/websocket-clients.ts'
import type { Change } from '../../storage/pg/changes.ts'
import type { AccessLog } from '../access-log.ts'
import type { ClientAddress } from '../clients/client-address.ts'
import type { ConnectionShares } from '../clients/connection-limits.ts'
import { isTooManyFailures, socketAddress } from '../fast-path/gateway-front.ts'
import { readGatewayHeaders } from '../fast-path/gateway-headers.ts'
import { headFault } from '../fast-path/request-target.ts'
import { type ConnectionLimits, defaultConnectionLimits, openConnection } from './connection.ts'
import { handshakeFault, refuseHandshake } from './handshake.ts'
import { createOpenConnections } from './open-connections.ts'

/** The gateway's WebSockets. */
export type Sockets = {
  /** Takes a request to change the protocol. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** A credential or an organization is not as it was. */
  forget(change: Change): void
  /** Closes the connections of a network that is no longer served. */
  closeNetwork(network: Network, reason: string): void
  /** Connections by the path of their network. */
  connections(): ReadonlyMap<string, number>
  /** The open connections, of one organization or of all; the oldest of them, up to a bound. */
  clients(organization_id: string | undefined): WebSocketClient[]
  /** Connections that were closed because their clients did not read. */
  overflows(): number
  /** Another process takes the place of this one: at the end clients are asked to connect again. */
  retire(): void
  stop(): Promise<void>
}

/** What WebSockets are served with. */
export type SocketsOptions = {
  /** By the first two segments of their address: `/c/mainnet`. */
  networks: ReadonlyMap<string, Network>
  /** Why there is no other network. */
  notFound?: Reason
  streams: ReadonlyMap<string, Streams>
  keys: GatewayKeys
  /** Counts refused keys. */
  audit?: RefusalCounts
  serve: Serve
  access: Pick<AccessLog, 'isSampled' | 'follow'>
  clock: Clock
  ids: Ids
  log: Log
  clientOf: ClientAddress
  /** How many WebSockets each client behind a proxy may have. */
  shares: ConnectionShares
  connectionsPerKey: number
  maxMessageBytes: number
  /** How long clients have to say goodbye at the end. */
  shutdownTimeoutMs: number
  limits?: Partial<ConnectionLimits>
  beatMs?: number
}

type Shaken = {
  path: string
  network: Network
  key: string
  client: string
  principal: Principal
  request_id: string
}

// RFC 6455 registry: the client should reconnect.
const serviceRestart = 1012

const badRoute = refuse(
  'ROUTE_NOT_FOUND',
  'The gateway is at /<chain>/<network>/v1/ws/<api_key>, or at /<chain>/<network>/v1/ws with the key in a header.',
)
const badKey = refuse('INVALID_KEY')
const notAllowed = refuse('METHOD_NOT_ALLOWED', 'A WebSocket begins with GET.')
const stoppingNow: Refusal = { ...refuse('SHUTTING_DOWN'), retryAfter: 1 }
const tooManyFailures: Refusal = { ...refuse('TOO_MANY_FAILURES'), retryAfter: 1 }
const tooManyHere: Refusal = { ...refuse('TOO_MANY_CONNECTIONS'), retryAfter: 1 }
const unknownKey: Refusal = { ...refuse('DATABASE_UNAVAILABLE'), retryAfter: 1 }

/** Serves the gateway over WebSocket. */
export function createSockets(options: SocketsOptions): Sockets {
  const { networks, streams, keys, audit, serve, access, clock, ids, log, clientOf } = options
  const { connectionsPerKey } = options
  const notFound = refuse(options.notFound ?? 'NETWORK_NOT_FOUND')
  const limits = { ...defaultConnectionLimits, ...options.limits }
  const { beatMs = 30_000 } = options
  // The library only parses frames. Handshake, pings and the outbox are ours, because each has a
  // bound.
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: options.maxMessageBytes,
    maxFragments: 16_384,
  })
  server.on('headers', (lines) => lines.push(`Date: ${new Date().toUTCString()}`))
  // What remains after our own look at the handshake: a malformed list of protocols.
  server.on('wsClientError', (error, socket) =>
    refuseHandshake(socket, refuse('INVALID_HANDSHAKE', `${error.message}.`), ids.uuid()),
  )
  const stopped = new AbortController()
  const open = createOpenConnections({ clock, log, beatMs, signal: stopped.signal })
  let overflows = 0
  let farewell = { code: 1001, reason: 'the service is stopping' }
  const tooMany: Refusal = {
    ...refuse('TOO_MANY_OPEN', `The key has ${connectionsPerKey} connections already.`),
    retryAfter: 1,
  }

  /** The principal of a key; undefined when the key is not valid, or not allowed on this network or from this address. */
  const check = (network: Network, key: string, client: string) => {
    const judge = (principal: Principal | undefined) =>
      principal && !gatewayDenial(principal, network, clock.now(), client) ? principal : undefined
    const principal = keys.principalOf(key, client)
    return principal instanceof Promise ? principal.then(judge) : judge(principal)
  }

  const shake = (
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    { path, network, key, client, principal, request_id }: Shaken,
  ) => {
    const { credential_id } = principal
    const number = open.nextNumber()
    // Counted at once: many handshakes of one key may be under way.
    open.countKey(credential_id, 1)
    let isOpen = false
    const leave = () => {
      if (!isOpen) open.countKey(credential_id, -1)
    }
    socket.once('close', leave)
    server.handleUpgrade(request, socket, head, (ws) => {
      isOpen = true
      open.countPath(path, 1)
      const connection = openConnection({
        ws,
        socket,
        network,
        streams: streams.get(path) as Streams,
        principal,
        client,
        number,
        openTime: clock.now(),
        request_id,
        access,
        serve,
        limits,
        check: () => check(network, key, client),
        onClosed: (closed) => {
          open.remove(closed)
          open.countKey(credential_id, -1)
          open.countPath(path, -1)
        },
        onOverflow: () => {
          overflows++
        },
      })
      open.add(connection, principal)
      const { organization_id } = principal
      log.debug(
        {
          ...{ request_id, client, organization_id, credential_id },
          ...{ chain: network.chain, network: network.network },
        },
        'WebSocket opened',
      )
    })
  }

  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Node has given the socket up to us: an error without a listener would end the process.
    socket.on('error', () => {})
    const headers = readGatewayHeaders(request.rawHeaders)
    const request_id = headers.request_id ?? ids.uuid()
    const refuseWith = (refusal: Refusal) => refuseHandshake(socket, refusal, request_id)
    const client = clientOf(request.socket.remoteAddress, headers.forwardedFor)
    const fault = headFault(request)
    if (fault !== undefined) return refuseWith(refuse('MALFORMED_REQUEST', fault))
    const [, path, keyInPath = ''] = socketAddress.exec(request.url ?? '') ?? []
    const key = keyInPath || (headers.bearer ?? '')
    if (stopped.signal.aborted) return refuseWith(stoppingNow)
    if (path === undefined) return refuseWith(badRoute)
    const network = networks.get(path)
    if (!network) return refuseWith(notFound)
    const { chain } = network
    if (request.method !== 'GET') return refuseWith(notAllowed)
    const bad = handshakeFault(request)
    if (bad) return refuseWith(bad)
    const { connections, isProxy } = options.shares
    // The connection of a proxy counts for no client; its WebSockets count for the client that it names.
    if (isProxy(clientOf(request.socket.remoteAddress, undefined))) {
      if (connections.take(client, 1)) return refuseWith(tooManyHere)
      socket.once('close', () => connections.giveBack(client, 1))
    }
    // Everything is checked again: the look-up of the key may have waited for the database.
    const proceed = (principal: Principal | undefined) => {
      if (socket.destroyed) return
      if (stopped.signal.aborted) return refuseWith(stoppingNow)
      if (!principal) {
        noteGatewayRefusal(audit, { client, chain }, 'INVALID_KEY')
        return refuseWith(badKey)
      }
      const denial = gatewayDenial(principal, network, clock.now(), client)
      if (denial) {
        noteGatewayRefusal(audit, { principal, client, chain }, denial.reason)
        return refuseWith(refusalOf(denial))
      }
      if (open.ofKey(principal.credential_id) >= connectionsPerKey) return refuseWith(tooMany)
      // It was removed or replaced while the key was checked.
      const current = networks.get(path)
      if (!current) return refuseWith(notFound)
      shake(request, socket, head, { path, network: current, key, client, principal, request_id })
    }
    const principal = keys.principalOf(key, client)
    if (!(principal instanceof Promise)) return proceed(principal)
    principal.then(proceed).catch((error: unknown) => {
      if (isTooManyFailures(error)) {
        noteGatewayRefusal(audit, { client, chain }, 'TOO_MANY_FAILURES')
        return refuseWith(tooManyFailures)
      }
      log.warn({ err: error, request_id, client }, 'key check failed')
      refuseWith(unknownKey)
    })
  }

  return {
    upgrade,
    forget: open.forget,
    closeNetwork: (network, reason) => open.closeNetwork(network, { code: serviceRestart, reason }),
    connections: open.byPath,
    clients: open.clients,
    overflows: () => overflows,
    retire() {
      farewell = { code: serviceRestart, reason: 'this process is replaced' }
    },
    async stop() {
      stopped.abort()
      for (const connection of open.all()) connection.close(farewell.code, farewell.reason)
      const deadline = clock.now() + options.shutdownTimeoutMs
      // Polled: a close is confirmed by the client, and there is no event for the last of them.
      while (open.byPath().size > 0 && clock.now() < deadline) await clock.sleep(20)
      for (const connection of open.all()) connection.terminate()
    },
  }
}
