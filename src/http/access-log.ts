import type { Reason } from '../contract/errors/errors.ts'
import type { Principal } from '../domain/access/principal.ts'
import type { Network } from '../gateway/network.ts'
import type { Served } from '../gateway/rpc/served.ts'
import type { Log } from '../lib/log.ts'
import type { Finished } from './exchange.ts'
import type { Routes } from './routes.ts'

/** The shares of requests that get a line in the log, from 0 to 1. */
export type AccessShares = { operations: number; gateway: number }

/** A call of the gateway that gets a line. */
export type GatewayCall = {
  request_id: string
  client: string
  network: Pick<Network, 'chain' | 'network' | 'methodName'> | undefined
  /** Undefined where the call was refused before its key was known. */
  principal: Principal | undefined
  /** The body of the request; empty where it was not read. */
  body: string
  trace_id?: string | undefined
  /** Set for a call of a WebSocket. The request id is then that of its connection. */
  isSocket?: true
}

/** One line per operation and per sampled call of the gateway. */
export type AccessLog = {
  /** Whether the next gateway call gets a line. Every call asks, so it must cost almost nothing. */
  isSampled(): boolean
  /** Writes the line of a sampled call when it is answered. */
  follow(call: GatewayCall, done: (served: Served) => void): (served: Served) => void
  finished(finished: Finished): void
}

/** A larger body is not parsed again for its method. */
const maxParsedBytes = 16_384
const maxMethods = 5
// The error object of the gateway itself begins its data so (gateway/rpc/rpc-error.ts).
const ownReason = /"data":\{"source":"gateway","reason":"([A-Z_]+)"/

/** Makes the access log. Lines contain ids of organizations and credentials, and no keys, signatures or paths. */
export function createAccessLog(options: {
  log: Log
  routes: Pick<Routes, 'find'>
  /** Asked for every request; a reload changes it. */
  shares(): AccessShares
  random?: () => number
}): AccessLog {
  const { log, routes, shares, random = Math.random } = options
  const isChosen = (share: number) => share > 0 && (share >= 1 || random() < share)
  return {
    isSampled: () => isChosen(shares().gateway),
    follow(call, done) {
      const begun = performance.now()
      return (served) => {
        const duration_ms = milliseconds(performance.now() - begun)
        done(served)
        log.info(gatewayLine(call, served, duration_ms), 'gateway call')
      }
    },
    finished(finished) {
      const { route, path, status, seconds, request_id, client, facts } = finished
      const { principal, reason, bytes_in, bytes_out, trace_id } = facts
      const duration_ms = milliseconds(seconds * 1000)
      const traced = trace_id === undefined ? {} : { trace_id }
      const seen = { request_id, client, ...traced, ...callerOf(principal) }
      const end = { status, ...(reason && { reason }), duration_ms, bytes_in, bytes_out }
      if (route !== 'operations' && route !== 'events') {
        // The path of another route may contain a key.
        log.debug({ route, ...seen, ...end }, 'request finished')
        return
      }
      if (!isChosen(shares().operations)) return
      const called = routes.find(path)
      const { chain, network, entry } = called ?? {}
      const operation = entry?.name ?? (route === 'events' ? 'events' : undefined)
      log.info({ ...seen, operation, chain, network, ...end }, 'request finished')
    },
  }
}

function gatewayLine(call: GatewayCall, served: Served, duration_ms: number): object {
  const { request_id, client, network, principal, body, isSocket, trace_id } = call
  const reason = reasonOf(served.body)
  return {
    request_id,
    client,
    ...(trace_id !== undefined && { trace_id }),
    ...callerOf(principal),
    chain: network?.chain,
    network: network?.network,
    ...(network && body !== '' && methodsOf(body, network.methodName)),
    ...(isSocket && { transport: 'websocket' }),
    status: served.status,
    ...(reason && { reason }),
    hit: served.hit,
    duration_ms,
    bytes_in: body.length,
    bytes_out: served.body.length,
  }
}

const callerOf = (principal: Principal | undefined) =>
  principal && {
    organization_id: principal.organization_id,
    credential_id: principal.credential_id,
  }

const milliseconds = (ms: number): number => Math.round(ms * 1000) / 1000

/** The methods of a body. Only names that the gateway knows are shown: a client can write a secret anywhere. */
function methodsOf(body: string, nameOf: (name: string) => string): object {
  if (body.length > maxParsedBytes) return { method: 'unread' }
  try {
    const parsed: unknown = JSON.parse(body)
    if (!Array.isArray(parsed)) return { method: nameOf(String(Object(parsed).method)) }
    const names = parsed.slice(0, maxMethods).map((one) => nameOf(String(Object(one).method)))
    return { method: [...new Set(names)].join(','), calls: parsed.length }
  } catch {
    return { method: 'unread' }
  }
}

/** The first reason in an answer. Large answers are results. */
const reasonOf = (body: string): Reason | undefined =>
  body.length > maxParsedBytes ? undefined : (ownReason.exec(body)?.[1] as Reason | undefined)
