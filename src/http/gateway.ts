import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Reason } from '../contract/errors.ts'
import type { GatewayKeys } from '../domain/access/gateway-keys.ts'
import type { Principal } from '../domain/context.ts'
import { rateLimitHeaders } from '../domain/limits/headers.ts'
import { refused } from '../gateway/answer.ts'
import type { Network } from '../gateway/network.ts'
import { refuse } from '../gateway/rpc-error.ts'
import { alone, faultOf, type Serve, type Served } from '../gateway/serve.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { readGatewayHeaders } from './gateway-headers.ts'
import type { Lane } from './server.ts'

/** What the gateway's part of the server needs. */
export type GatewayLaneOptions = {
  /** By the first two segments of their address: `/c/mainnet`. */
  networks: ReadonlyMap<string, Network>
  keys: GatewayKeys
  serve: Serve
  bodyLimitBytes: number
  ids: Ids
  log: Log
  /** Whether every answer is logged. */
  isLogged: boolean
}

const networkPath = /^\/[^/]+\/[^/]+$/

const refusal = (reason: Reason, message?: string): Served =>
  alone(refused(refuse(reason, message)))
const notFound = refusal('NETWORK_NOT_FOUND')
const notAllowed = refusal('METHOD_NOT_ALLOWED', 'The gateway takes POST only.')
const noHost = refusal('MALFORMED_REQUEST', 'The header host is missing.')
const badKey = refusal('INVALID_KEY')
const badType = refusal('UNSUPPORTED_MEDIA_TYPE')
const badText = refusal('INVALID_JSON', 'The body is not valid UTF-8.')
const stoppingNow: Served = { ...refusal('SHUTTING_DOWN'), retryAfter: 1 }
const nothing: readonly string[] = []
const allowPost: readonly string[] = ['allow', 'POST']
const closing: readonly string[] = ['connection', 'close']

/**
 * Serves the gateway's addresses beside the general path of the server: at tens of thousands of calls
 * a second what that does for every exchange would cost more than the calls themselves.
 */
export function createGatewayLane(options: GatewayLaneOptions): Lane {
  const { networks, keys, serve, bodyLimitBytes, ids, log, isLogged } = options
  const tooLarge = refusal('BODY_TOO_LARGE', `The body is larger than ${bodyLimitBytes} bytes.`)
  // Unique without the cost of a UUID: where it came from, and a running number.
  const idPrefix = ids.bytes(9).toString('base64url')
  let lastId = 0

  const reply = (
    response: ServerResponse,
    request_id: string,
    served: Served,
    more: readonly string[],
  ) => {
    if (response.headersSent || response.destroyed) return
    const { status, body, decision, hit, hash, retryAfter } = served
    const headers = ['x-request-id', request_id]
    if (status !== 204) {
      headers.push('content-type', 'application/json')
      headers.push('content-length', String(body.length))
    }
    if (hit !== undefined) headers.push('x-portolan-cache', hit ? 'HIT' : 'MISS')
    if (hash !== '') headers.push('x-portolan-block', `${served.number}:${hash}`)
    if (decision) {
      const limits = rateLimitHeaders(decision)
      for (const name in limits) headers.push(name, limits[name] as string)
    } else if (retryAfter !== undefined) headers.push('Retry-After', String(retryAfter))
    for (const text of more) headers.push(text)
    response.writeHead(status, headers)
    response.end(body, 'latin1')
  }

  const receive = (
    request: IncomingMessage,
    response: ServerResponse,
    request_id: string,
    network: Network,
    principal: Principal,
    isStopping: () => boolean,
  ) => {
    // Kept alive, the connection would hold up the stop of the server.
    const answer = (served: Served, more = isStopping() ? closing : nothing) => {
      reply(response, request_id, served, more)
      if (isLogged) logAnswer(request_id, network, served)
    }
    let first: Buffer | undefined
    let rest: Buffer[] | undefined
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > bodyLimitBytes) {
        rest = undefined
        answer(tooLarge, closing)
      } else if (first === undefined) first = chunk
      else {
        rest ??= [first]
        rest.push(chunk)
      }
    })
    request.on('end', () => {
      if (size > bodyLimitBytes) return
      const body = rest ? Buffer.concat(rest) : (first ?? Buffer.alloc(0))
      if (!isUtf8(body)) return answer(badText)
      try {
        serve(network, principal, body.toString('latin1'), answer)
      } catch (error) {
        log.error({ err: error, request_id }, 'request failed')
        answer(alone(faultOf(error)))
      }
    })
  }

  const logAnswer = (request_id: string, { chain, network }: Network, served: Served) => {
    const { status, body, hit } = served
    log.debug({ request_id, chain, network, status, bytes: body.length, hit }, 'gateway answer')
  }

  return (request, response, isStopping) => {
    const url = request.url ?? ''
    const at = url.indexOf('/v1/')
    if (at <= 0) return false
    const path = url.slice(0, at)
    const network = networks.get(path)
    if (!network && !networkPath.test(path)) return false
    const query = url.indexOf('?', at)
    const key = query < 0 ? url.slice(at + 4) : url.slice(at + 4, query)
    // Longer addresses are not the gateway's HTTP ones.
    if (key.includes('/')) return false

    const headers = readGatewayHeaders(request.rawHeaders)
    const request_id = headers.request_id ?? `${idPrefix}-${(lastId++).toString(36)}`
    const refuseWith = (served: Served, more = nothing) => {
      reply(response, request_id, served, more)
      if (isLogged && network) logAnswer(request_id, network, served)
      return true
    }
    if (isStopping()) return refuseWith(stoppingNow, closing)
    if (!headers.hasHost && request.httpVersion === '1.1') return refuseWith(noHost, closing)
    if (!network) return refuseWith(notFound)
    if (request.method !== 'POST') return refuseWith(notAllowed, allowPost)

    const proceed = (principal: Principal | undefined) => {
      if (!principal) return refuseWith(badKey)
      if (!headers.isJson) return refuseWith(badType)
      if (headers.contentLength > bodyLimitBytes) return refuseWith(tooLarge, closing)
      receive(request, response, request_id, network, principal, isStopping)
      return true
    }
    const principal = keys.principalOf(key)
    if (principal instanceof Promise)
      principal.then(proceed).catch((error: unknown) => {
        log.warn({ err: error, request_id }, 'a key could not be checked')
        refuseWith(alone(faultOf(error)))
      })
    else proceed(principal)
    return true
  }
}
