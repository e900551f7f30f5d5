import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { LRUCache } from 'lru-cache'
import { buildConnector, type Dispatcher, Pool } from 'undici'
import {
  bareHost,
  type CheckedEndpoint,
  checkEndpoint,
  type EndpointRules,
} from '../../lib/net/endpoint.ts'
import { createExchange, type GuardedAnswer } from './guarded-exchange.ts'
import {
  createGuardedLookup,
  ForbiddenAddressError,
  type ResolveName,
  resolverFor,
} from './guarded-lookup.ts'

/** How to build a client for addresses that users chose. */
export type GuardedFetchOptions = EndpointRules & {
  /** Finds the addresses of a name; the system's own way by default. */
  resolve?: ResolveName
  connectTimeoutMs?: number
  /** Connections to that many hosts are kept open; the longest idle are closed first. */
  maxHosts?: number
  tls?: Pick<ConnectionOptions, 'ca'>
}

/** One request. Redirects are never followed, and what is compressed stays so. */
export type GuardedRequest = {
  url: string
  method: 'GET' | 'POST'
  /** Names and values in turn: a copy of the list costs less than one of an object. */
  headers?: readonly string[]
  body?: string | Buffer
  /** For the whole exchange. */
  timeoutMs: number
  /** The body is read up to this many bytes; then `truncated` is set. */
  maxBytes: number
  signal?: AbortSignal
}

/** A client that reaches public addresses only, unless the operator allows others. */
export type GuardedFetch = {
  /** Sends a request; throws GuardedFetchError when no answer came. */
  request(request: GuardedRequest): Promise<GuardedAnswer>
  stop(): Promise<void>
}

// Entries are small; the bound only keeps a tenant with many endpoints from growing the process.
const checkedAddresses = 10_000

const uncompressed = ['accept-encoding', 'identity']

type Host = { pool: Pool; open: number }

/** Opens a client whose every connection is checked: what was asked for, and what it leads to. */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { reachable, connectTimeoutMs = 10_000, maxHosts = 1_000, tls } = options
  const resolve = options.resolve ?? resolverFor(reachable)
  // The rules do not change, and the same few addresses come again and again.
  const checked = new LRUCache<string, CheckedEndpoint>({ max: checkedAddresses })
  const check = (text: string): CheckedEndpoint => {
    const known = checked.get(text)
    if (known) return known
    const fresh = checkEndpoint(text, options)
    checked.set(text, fresh)
    return fresh
  }
  // In the order of their last use.
  const hosts = new Map<string, Host>()
  let newest: Host | undefined

  const connectChecked = buildConnector({
    ...tls,
    allowH2: false,
    timeout: connectTimeoutMs,
    lookup: createGuardedLookup(reachable, resolve),
  })
  const connect: buildConnector.connector = (target, callback) => {
    const host = bareHost(target.hostname)
    // A socket does not look up what is an address already.
    if (isIP(host) && !reachable.allows(host))
      return callback(new ForbiddenAddressError('Not a public address.'), null)
    // Checked again after connecting: the address that counts is the one of the socket.
    connectChecked({ ...target, hostname: host }, (...[error, socket]) => {
      if (error) return callback(error, null)
      if (reachable.allows(socket.remoteAddress ?? '')) return callback(null, socket)
      socket.destroy()
      callback(new ForbiddenAddressError('Connected to an address that is not public.'), null)
    })
  }

  // Hosts with open requests are skipped, so the bound may be exceeded for a while.
  const closeOldest = () => {
    for (const [origin, { pool, open }] of hosts) {
      if (hosts.size <= maxHosts) return
      if (open > 0) continue
      hosts.delete(origin)
      void pool.close()
    }
  }

  const openHost = (origin: string): Host => {
    const known = hosts.get(origin)
    if (known && known === newest) {
      known.open++
      return known
    }
    if (known) hosts.delete(origin)
    const host = known ?? {
      // As many connections as the callers ask for: they bound what is under way, per receiver and
      // not per host, so that receivers behind one host do not wait for each other.
      pool: new Pool(origin, {
        // No time limits of the pool: `createExchange` has one for the whole request.
        connect,
        connections: null,
        pipelining: 1,
        headersTimeout: 0,
        bodyTimeout: 0,
        maxHeaderSize: 16_384,
      }),
      open: 0,
    }
    // Before the oldest are closed: it must not be among them.
    host.open++
    hosts.set(origin, host)
    newest = host
    if (!known) closeOldest()
    return host
  }

  return {
    request: async ({ url: text, method, headers = [], body, ...limits }) => {
      const { url, problem } = check(text)
      const exchange = createExchange(limits)
      if (problem !== undefined) return await exchange.refuse(new ForbiddenAddressError(problem))
      const host = openHost(url.origin)
      const request: Dispatcher.DispatchOptions = {
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers: headers.concat(uncompressed),
        body: body ?? null,
      }
      try {
        host.pool.dispatch(request, exchange.handler)
        return await exchange.answer
      } catch (error) {
        return await exchange.refuse(error)
      } finally {
        host.open--
      }
    },
    stop: async () => {
      const open = [...hosts.values()]
      hosts.clear()
      await Promise.all(open.map(({ pool }) => pool.destroy()))
    },
  }
}
