import { OperationError, type Reason } from '../../contract/errors/errors.ts'
import { admitSize, type Paid, type Admission as RateAdmission } from '../../domain/access/admit.ts'
import { gatewayDenial } from '../../domain/access/authorize.ts'
import type { GatewayKeys } from '../../domain/access/gateway-keys.ts'
import type { Principal } from '../../domain/access/principal.ts'
import { noteGatewayRefusal, type RefusalCounts } from '../../domain/audit/operation.ts'
import { createRateLimitLines } from '../../domain/limits/decision.ts'
import type { Network } from '../../gateway/network.ts'
import { refused } from '../../gateway/rpc/answer.ts'
import { refusalOf, refuse } from '../../gateway/rpc/rpc-error.ts'
import { countUnread, faultOf, type Serve } from '../../gateway/rpc/serve.ts'
import { alone, type Served } from '../../gateway/rpc/served.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Tracing } from '../../lib/tracing.ts'
import type { AccessLog } from '../access-log.ts'
import { isTemporary, keyChallenge } from '../problems.ts'
import type { GatewayHeaders } from './gateway-headers.ts'

/** What the gateway's part of the server needs. */
export type GatewayFrontOptions = {
  /** By the first two segments of their address: `/c/mainnet`. */
  networks: ReadonlyMap<string, Network>
  /** Why there is no other network. */
  notFound?: Reason
  keys: GatewayKeys
  /** Counts refused keys. */
  audit?: RefusalCounts
  serve: Serve
  /** Counts bodies by the length that they announce. */
  admission: RateAdmission
  bodyLimitBytes: number
  clock: Clock
  ids: Ids
  log: Log
  access: Pick<AccessLog, 'isSampled' | 'follow'>
  /** Traces a share of the calls. */
  tracing?: Tracing | undefined
}

/** Where a request goes: an address of the gateway's form, its network if there is one. */
export type Place = {
  /** The network's part of the address. */
  path: string
  network: Network | undefined
  /** Empty where the key is in the header. */
  key: string
  /** The address that the request comes from. */
  client: string
  isSocket?: true
}

/** A request that was let in. */
export type Admission = { network: Network; principal: Principal; client: string }

/** What every way of carrying gateway requests has in common. */
export type GatewayFront = {
  bodyLimitBytes: number
  /** Undefined for addresses that are not the gateway's. */
  find(url: string, client: string): Place | undefined
  /** The same for the addresses of WebSockets, which get no other answer over HTTP than how to use them. */
  findSocket(url: string, client: string): Place | undefined
  noUpgrade(place: Place, isGet: boolean): Served
  /** The id of a request: the caller's, or a new one. */
  requestId(given: string | undefined): string
  /** Decides by address and headers alone whether a body is worth reading. */
  admit(
    place: Place,
    isPost: boolean,
    headers: GatewayHeaders,
    request_id: string,
  ): Admission | Served | Promise<Admission | Served>
  /** Writes a line for a request that is refused without a call, where such lines are sampled. */
  noteRefused(place: Place, request_id: string, served: Served): void
  /** Counts a body against the limits by the length that it announces. */
  admitSize(admitted: Admission, bytes: number): Promise<Paid>
  /** Puts a body into the usage that the limits have counted by its length, and that becomes no call. */
  countUnread(admitted: Admission, reason: Reason): void
  answer(
    admission: Admission,
    request_id: string,
    body: string,
    done: (served: Served) => void,
    ahead?: Paid,
  ): void
  /** The answer when the limits could not be checked. */
  fault(error: unknown, request_id: string): Served
  /** The headers of an answer, each with its line break: as text, because every answer has them. */
  linesOf(served: Served, request_id: string, place: Place): string
  badText: Served
  malformed(detail: string): Served
  tooLarge: Served
  noRoom(reason: Reason): Served
  stopping: Served
}

/** Where a WebSocket is: its network, and the key unless that is in the header. */
export const socketAddress: RegExp = /^(\/[^/]+\/[^/]+)\/v1\/ws(?:\/([^/?]*))?(?:\?|$)/
const bareAddress = /^(\/[^/?]+\/[^/?]+)\/v1(?:\?|$)/
const networkPath = /^\/[^/]+\/[^/]+$/

const hitLine = 'x-portolan-cache: HIT\r\n'
const missLine = 'x-portolan-cache: MISS\r\n'

const lastDigits = Array.from({ length: 36 * 36 }, (_, number) =>
  number.toString(36).padStart(2, '0'),
)

/**
 * Ids that are unique without the cost of a UUID: where they came from, and a running number. Its last two digits
 * come from a table, so that most ids need no conversion of a number.
 */
function createRequestIds(ids: Ids): () => string {
  const origin = ids.bytes(9).toString('base64url')
  let prefix = ''
  let high = 0
  let low = 0
  return () => {
    if (low === 0) prefix = `${origin}-${(high++).toString(36)}`
    const id = prefix + lastDigits[low]
    low = (low + 1) % lastDigits.length
    return id
  }
}

const refusal = (reason: Reason, message?: string): Served =>
  alone(refused(refuse(reason, message)))

/** Such a refusal is the failure budget's to log. */
export const isTooManyFailures = (error: unknown): boolean =>
  error instanceof OperationError && error.reason === 'TOO_MANY_FAILURES'

/** Makes the front. */
export function createGatewayFront(options: GatewayFrontOptions): GatewayFront {
  const { networks, keys, audit, serve, admission, bodyLimitBytes, clock, ids, log, access } =
    options
  const { tracing } = options
  const notFound = refusal(options.notFound ?? 'NETWORK_NOT_FOUND')
  const notAllowed = refusal('METHOD_NOT_ALLOWED', 'The gateway takes POST only.')
  const notUpgraded = refusal('UPGRADE_REQUIRED')
  const notSocket = refusal(
    'METHOD_NOT_ALLOWED',
    'This is the address of a WebSocket. Over HTTP the gateway is at /<chain>/<network>/v1/<api_key>.',
  )
  const badKey = refusal('INVALID_KEY')
  const badType = refusal('UNSUPPORTED_MEDIA_TYPE')
  const tooLarge = refusal('BODY_TOO_LARGE', `The body is larger than ${bodyLimitBytes} bytes.`)
  const limitLines = createRateLimitLines()
  const nextId = createRequestIds(ids)

  const settle = (
    network: Network,
    principal: Principal | undefined,
    client: string,
    { isJson, contentLength }: GatewayHeaders,
  ): Admission | Served => {
    const { chain } = network
    if (!principal) {
      noteGatewayRefusal(audit, { client, chain }, 'INVALID_KEY')
      return badKey
    }
    const denial = principal.restrictions && gatewayDenial(principal, network, clock.now(), client)
    if (denial) {
      noteGatewayRefusal(audit, { principal, client, chain }, denial.reason)
      return alone(refused(refusalOf(denial)))
    }
    if (!isJson) return badType
    return contentLength > bodyLimitBytes ? tooLarge : { network, principal, client }
  }

  /** The address without a key: that is in the header. */
  const findBare = (url: string, client: string): Place | undefined => {
    const [, path = ''] = bareAddress.exec(url) ?? []
    return path === '' ? undefined : { path, network: networks.get(path), key: '', client }
  }

  const answer = (
    { network, principal, client }: Admission,
    request_id: string,
    body: string,
    done: (served: Served) => void,
    ahead: Paid | undefined,
    trace_id?: string,
  ): void => {
    const finish = access.isSampled()
      ? access.follow({ request_id, client, network, principal, body, trace_id }, done)
      : done
    try {
      serve(network, principal, body, finish, ahead)
    } catch (error) {
      log.error({ err: error, request_id, client }, 'request failed')
      finish(alone(faultOf(error)))
    }
  }

  const answerTraced = (
    tracing: Tracing,
    admitted: Admission,
    request_id: string,
    body: string,
    done: (served: Served) => void,
    ahead: Paid | undefined,
  ): void => {
    const { chain, network } = admitted.network
    const span = tracing.begin({
      name: 'gateway',
      fields: { 'portolan.chain': `${chain}/${network}`, 'portolan.request_id': request_id },
    })
    const finish = (served: Served) => {
      span.end({ 'http.response.status_code': served.status })
      done(served)
    }
    span.run(() => answer(admitted, request_id, body, finish, ahead, span.trace_id))
  }

  return {
    bodyLimitBytes,
    badText: refusal('INVALID_JSON', 'The body is not valid UTF-8.'),
    malformed: (detail) => refusal('MALFORMED_REQUEST', detail),
    tooLarge,
    noRoom: (reason) => refusal(reason),
    stopping: { ...refusal('SHUTTING_DOWN'), retryAfter: 1 },
    find(url, client) {
      const at = url.indexOf('/v1/')
      if (at <= 0) return findBare(url, client)
      const path = url.slice(0, at)
      const network = networks.get(path)
      // An address of the form of the gateway gets its answer, also where the network is unknown.
      if (!network && !networkPath.test(path)) return undefined
      const query = url.indexOf('?', at)
      const key = query < 0 ? url.slice(at + 4) : url.slice(at + 4, query)
      // Longer addresses are not the gateway's HTTP ones, nor is that of its WebSockets.
      return key.includes('/') || key === 'ws' ? undefined : { path, network, key, client }
    },
    findSocket(url, client) {
      const [, path, key = ''] = socketAddress.exec(url) ?? []
      if (path === undefined) return undefined
      return { path, network: networks.get(path), key, client, isSocket: true }
    },
    noUpgrade: ({ network }, isGet) => (!network ? notFound : isGet ? notUpgraded : notSocket),
    requestId: (given) => given ?? nextId(),
    admit({ path, key, client }, isPost, headers, request_id) {
      // A connection keeps its place. A reload may have replaced or removed the network since.
      const network = networks.get(path)
      if (!network) return notFound
      if (!isPost) return notAllowed
      const principal = keys.principalOf(key || (headers.bearer ?? ''), client)
      if (!(principal instanceof Promise)) return settle(network, principal, client, headers)
      return principal.then(
        (known) => settle(network, known, client, headers),
        (error: unknown) => {
          if (isTooManyFailures(error))
            noteGatewayRefusal(audit, { client, chain: network.chain }, 'TOO_MANY_FAILURES')
          else log.warn({ err: error, request_id, client }, 'key check failed')
          return alone(faultOf(error))
        },
      )
    },
    noteRefused({ network, client }, request_id, served) {
      if (!access.isSampled()) return
      access.follow({ request_id, client, network, principal: undefined, body: '' }, () => {})(
        served,
      )
    },
    admitSize: ({ network, principal }, bytes) =>
      admitSize(
        admission,
        { organization_id: principal.organization_id, chain: network.chain },
        bytes,
      ),
    countUnread: ({ network, principal }, reason) =>
      countUnread(network, principal, refuse(reason), false),
    fault(error, request_id) {
      log.error({ err: error, request_id }, 'request failed')
      return alone(faultOf(error))
    },
    answer(admitted, request_id, body, done, ahead) {
      if (tracing?.isSampled()) answerTraced(tracing, admitted, request_id, body, done, ahead)
      else answer(admitted, request_id, body, done, ahead)
    },
    linesOf(served, request_id, place) {
      const { status, body, decision, hit, hash, retryAfter } = served
      let lines = `x-request-id: ${request_id}\r\nx-content-type-options: nosniff\r\n`
      if (status !== 204)
        lines += `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
      if (status === 405) lines += `allow: ${place.isSocket ? 'GET' : 'POST'}\r\n`
      else if (status === 426) lines += 'upgrade: websocket\r\n'
      else if (status === 401) lines += `www-authenticate: ${keyChallenge}\r\n`
      if (hit !== undefined) lines += hit ? hitLine : missLine
      if (hash !== '') lines += `x-portolan-block: ${served.number}:${hash}\r\n`
      if (decision) lines += limitLines(decision)
      // What the limits say of a refusal stands there already.
      if (decision?.allowed !== false && (retryAfter !== undefined || isTemporary(status)))
        lines += `Retry-After: ${retryAfter ?? 1}\r\n`
      return lines
    },
  }
}
