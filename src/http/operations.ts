// The HTTP code of all operations (docs/architecture.md, "Path of an operation"); the fast path calls `perform` as well.
// The order of the steps is fixed: signature, nonce, limits, body. A body above `smallBodyBytes` is not parsed before the
// call is counted; a smaller one may be, for chain queries that are begun while their nonce is stored
// (`domain/query/ahead.ts`).

import { OperationError } from '../contract/errors/errors.ts'
import { idempotencyHeader, replayedHeader } from '../contract/idempotency.ts'
import { createProjection, type Projection } from '../contract/project.ts'
import { authHeaders } from '../contract/signature.ts'
import {
  type Admission,
  admitBody,
  maxBodyValues,
  rateLimited,
  smallBodyBytes,
} from '../domain/access/admit.ts'
import { type Authenticator, unauthenticated } from '../domain/access/authenticate.ts'
import { authorizeOperation } from '../domain/access/authorize.ts'
import { isKeyShaped } from '../domain/access/credential-keys.ts'
import { createIdempotency } from '../domain/access/idempotency.ts'
import type { OperationUsage } from '../domain/access/operation-usage.ts'
import type { Principal } from '../domain/access/principal.ts'
import { noteRefusal, noteReplay, performOperation } from '../domain/audit/operation.ts'
import type { AuditTrail } from '../domain/audit/trail.ts'
import type { Context, Installation } from '../domain/context.ts'
import { type PrepareCall, prepareOperation } from '../domain/handlers.ts'
import { createAnswersInTurn } from '../domain/limits/answers-in-turn.ts'
import { createRateLimitList, type Decision } from '../domain/limits/decision.ts'
import { type Begun, createAhead } from '../domain/query/ahead.ts'
import type { QuerySource } from '../domain/query/source.ts'
import { performWithReplicas } from '../domain/replica-reads.ts'
import { maxDepth, parseJson } from '../lib/json/json.ts'
import { inSpan, type Tracing } from '../lib/tracing.ts'
import { type Exchange, type Facts, readBody, send, skipBody } from './exchange.ts'
import { isJsonType, operationTypes } from './json-type.ts'
import type { Route, Routes } from './routes.ts'

/** What the loop over the catalogue needs. */
export type OperationsOptions = {
  installation: Installation
  routes: Routes
  authenticator: Authenticator
  admission: Admission
  bodyLimitBytes: number
  /** Called for every call that was authenticated and counted. */
  usage?: Pick<OperationUsage, 'count'>
  /** Records changes and refusals. */
  audit?: AuditTrail
  /** Traces a share of the calls. */
  tracing?: Tracing | undefined
  /** No operation keeps its caller waiting longer, not even on a database that is frozen. */
  timeoutMs: number
}

/** A request for an operation, whatever carried it. */
export type OperationCall = {
  route: Route
  method: string
  /** The request target as sent: what a signature covers. */
  target: string
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: Buffer
  /** The address that the call comes from; behind trusted proxies that of the client. */
  client: string
  signal: AbortSignal
  facts: Facts
  /** Of an answer of any kind. */
  setHeader(name: string, value: string): void
}

/** The operations of the catalogue. */
export type Operations = {
  /** Answers with the body of a success. */
  perform(call: OperationCall): Promise<string>
  /** Serves an exchange of Node's server. */
  handle(exchange: Exchange): Promise<void>
  /** Resolves when the calls that run now on what is chosen have ended. */
  settled(isChosen: (route: Route) => boolean): Promise<void>
}

/**
 * Serves every operation of the catalogue through one path: read, authenticate, limit, check, do,
 * project. There is no HTTP code of a single operation anywhere.
 */
export function createOperations({
  installation,
  routes,
  authenticator,
  admission,
  bodyLimitBytes,
  usage,
  audit,
  tracing,
  timeoutMs,
}: OperationsOptions): Operations {
  const preparations = new Map<string, PrepareCall | undefined>()
  const projections = new Map<string, Projection>()
  const ahead = createAhead()
  const idempotency = createIdempotency()
  const listLimits = createRateLimitList()
  const turns = createAnswersInTurn(admission.pace)

  /** Calls under way, for a reload that removes a chain: it waits for those that use it. */
  const running = new Set<{ route: Route; ended: Promise<string> }>()

  const perform = (call: OperationCall): Promise<string> => {
    const ended = tracing?.isSampled() ? runTraced(tracing, call) : run(call)
    const entry = { route: call.route, ended: withDeadline(timeoutMs, ended) }
    const leave = () => running.delete(entry)
    running.add(entry)
    entry.ended.then(leave, leave)
    return entry.ended
  }

  const settled = async (isChosen: (route: Route) => boolean): Promise<void> => {
    const chosen = [...running].filter(({ route }) => isChosen(route))
    await Promise.allSettled(chosen.map(({ ended }) => ended))
  }

  const handle = async (exchange: Exchange): Promise<void> => {
    const { request, response, method, target, path, client, signal, facts } = exchange
    const route = routes.find(path)
    if (!route) throw routes.refusal(path)
    if (method !== 'POST')
      throw new OperationError('METHOD_NOT_ALLOWED', { headers: { allow: 'POST' } })
    const { headers } = request
    const body = isSigned(headers)
      ? await readBody(exchange, bodyLimitBytes)
      : // Whether there is one decides about its content type; nothing else of it is looked at.
        Buffer.alloc(Math.min(1, await skipBody(exchange, bodyLimitBytes)))
    facts.bytes_in = body.length
    const setHeader = (name: string, value: string) => response.setHeader(name, value)
    const answer = await perform({
      ...{ route, method, target, headers, body, client, signal, facts, setHeader },
    })
    send(exchange, 200, { 'content-type': 'application/json' }, answer)
  }

  const runTraced = (tracing: Tracing, call: OperationCall): Promise<string> => {
    const { entry } = call.route
    const at = pathOf(call.route)
    const traceparent = single(call.headers.traceparent)
    const fields = { 'portolan.chain': at, 'portolan.request_id': call.facts.request_id }
    const span = tracing.begin({ name: `${entry.service}/${entry.name}`, fields, traceparent })
    call.facts.trace_id = span.trace_id
    return inSpan(span, () => run(call))
  }

  async function run(call: OperationCall): Promise<string> {
    const { route, method, target, headers, body, client, signal } = call
    if (body.length > 0) checkContentType(headers)
    const { entry, chain, network } = route
    const { service, name } = entry
    const at = pathOf(route)
    const { queries } = installation
    const signed = {
      api_key: single(headers[authHeaders.key]),
      nonce: single(headers[authHeaders.nonce]),
      signature: single(headers[authHeaders.signature]),
      ...{ method, path: target, body, client },
    }
    // Each organization has its share of the connections, so that one cannot use all of them.
    const contextOf = (principal: Principal, query: QuerySource | undefined): Context => ({
      ...{ ...installation, principal, service, chain, network, query, operation: name, signal },
      db: installation.shareOf?.(principal.organization_id) ?? installation.db,
    })
    const found = service === 'q' ? queries?.find(chain, network) : undefined
    // Only for a caller that was admitted: it begins to record what is pending there.
    const openQuery = async () =>
      service === 'q' ? await queries?.open(chain, network) : undefined
    const work = (context: Context) => answerOf(context, call)
    let begun: Begun<string> | undefined
    let begunFor: Principal | undefined
    let counted: Principal | undefined
    // Also of a large body that is refused after the limits have counted it. Such a refusal is no event of the audit log.
    let used: Principal | undefined
    try {
      // Inside of the `try`: a refusal is an event of the audit log.
      if (!isSigned(headers)) throw unauthenticated()
      const principal = await authenticator.authenticate(signed, (principal) => {
        // A large body is not parsed before it is admitted, and large answers come before.
        if (body.length > smallBodyBytes || turns.mustWait(principal.organization_id)) return
        begunFor = principal
        // The nonce is being stored meanwhile. The answer is held back until the nonce counts, so a replayed request never
        // sees it; changes are not begun ahead.
        begun = ahead.begin(contextOf(principal, found), work)
      })
      call.facts.principal = principal
      // What the credential may do was changed meanwhile: what was begun for it counts no more.
      if (begun && begunFor !== principal) begun = void begun.refuse(new Error('superseded'))
      // A promise with Redis, several processes, a large body or a caller that is not in memory. In the usual case there is
      // none, and no turn of the event loop is spent on it.
      const admitted = admitOperation(admission, principal, chain, body, () => {
        used = principal
      })
      const decision = admitted instanceof Promise ? await admitted : admitted
      ahead.decided(principal, decision.allowed)
      if (!decision.allowed) {
        usage?.count(principal, chain, name, 'refused')
        throw rateLimited(decision)
      }
      counted = principal
      installation.bulkTurns?.note(principal.organization_id)
      used = principal
      const limits = listLimits(decision)
      for (let at = 0; at < limits.length; at += 2) call.setHeader(limits[at]!, limits[at + 1]!)
      const { organization_id } = principal
      const answer = await turns.run({ organization_id, bytes: body.length, signal }, async () => {
        begun?.admit()
        return begun ? begun.answer : work(contextOf(principal, found ?? (await openQuery())))
      })
      usage?.count(principal, chain, name, 'done')
      return answer
    } catch (error) {
      if (used) usage?.count(used, chain, name, 'failed')
      begun?.refuse(error)
      if (audit)
        noteRefusal(audit, { principal: counted, client, service: at, operation: name }, error)
      throw error
    }
  }

  async function answerOf(context: Context, call: OperationCall): Promise<string> {
    const { route, body, client } = call
    const { entry } = route
    const { service, name, row } = entry
    authorizeOperation(context.principal, route, client)
    const path = `${service}/${name}`
    const at = pathOf(route)
    const prepare = cached(preparations, path, () => prepareOperation(entry))
    if (!prepare) throw new OperationError('NOT_IMPLEMENTED')
    const { request, perform } = prepare(parseBody(body))
    const { principal } = context
    const made = { principal, client, service: at, operation: name }
    const act = (given: Context) =>
      performWithReplicas(entry, given, (chosen) =>
        performOperation(audit, made, request, (concerns) =>
          perform(concerns ? { ...chosen, concerns } : chosen),
        ),
      )
    const project = cached(projections, path, () => createProjection(entry))
    // Only operations that would create something twice take the key; the others ignore the header.
    const key = row.creates ? single(call.headers[idempotencyHeader]) : undefined
    if (key === undefined) return JSON.stringify(project(await act(context)))
    const { answer, isReplayed } = await idempotency.run(context, {
      ...{ key, operation: `${at}/${name}`, body, perform: act },
      render: (result) => JSON.stringify(project(result)),
    })
    if (isReplayed) {
      await noteReplay(audit, made, request, answer)
      call.setHeader(replayedHeader, 'true')
    }
    return answer
  }

  return { perform, handle, settled }
}

/** Where an operation is, as usage and the audit log name it. */
const pathOf = ({ chain, network }: Route): string =>
  network === undefined ? chain : `${chain}/${network}`

/** Counts a call against the limits before its body is parsed: a large one as more than one. */
function admitOperation(
  admission: Admission,
  { organization_id }: Principal,
  chain: string,
  body: Buffer,
  /** Called where the limits have counted a body that is refused all the same. */
  onCounted: () => void,
): Decision | Promise<Decision> {
  if (body.length <= smallBodyBytes) return admission.admit(organization_id, chain)
  const size = { bytes: body.length, text: () => body.toString('latin1'), maxDepth }
  return admitBody(admission, { organization_id, chain }, size).then((admitted) => {
    const { decision, shape, refusal, paid } = admitted
    const isRefused = refusal !== undefined || shape?.beyond === 'values' || !decision.allowed
    if (isRefused && paid > 0) onCounted()
    if (refusal && decision.allowed) throw refusal
    // Its size fitted into the limits, and its values did not.
    if (!decision.allowed && paid > 0) throw rateLimited(decision)
    if (shape?.beyond !== 'values') return decision
    throw new OperationError('BODY_TOO_LARGE', {
      detail: `The body holds more than ${maxBodyValues} values.`,
    })
  })
}

/** Stops waiting. The work itself continues to its end, and its late answer is dropped. */
const withDeadline = <answer>(ms: number, work: Promise<answer>): Promise<answer> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new OperationError('OPERATION_TIMEOUT')), ms)
    // Not by `finally`, which makes two more promises.
    work.then(
      (answer) => {
        clearTimeout(timer)
        resolve(answer)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })

function parseBody(body: Buffer): unknown {
  if (body.length === 0) return {}
  const parsed = parseJson(body)
  if (parsed.ok) return parsed.value
  const { field, detail } = parsed.problem
  throw new OperationError('INVALID_JSON', {
    detail: field ? `${field}: ${detail}` : detail,
    errors: [{ field, reason: 'INVALID_JSON', detail }],
  })
}

function checkContentType(headers: OperationCall['headers']): void {
  const type = single(headers['content-type']) ?? ''
  const encoding = headers['content-encoding'] ?? 'identity'
  if (!isJsonType(type, operationTypes) || encoding !== 'identity')
    throw new OperationError('UNSUPPORTED_MEDIA_TYPE')
}

/** Without all three credentials no body is kept: it would be refused whatever it says. */
const isSigned = (headers: OperationCall['headers']): boolean =>
  isKeyShaped(single(headers[authHeaders.key])) &&
  Boolean(single(headers[authHeaders.nonce]) && single(headers[authHeaders.signature]))

const single = (value: string | string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

function cached<value>(map: Map<string, value>, key: string, make: () => value): value {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}
