import type { Span } from './cluster-disturb.ts'
import type { Peer } from './cluster-world.ts'

/** Something that was done to the cluster; `role` where it was done to one process, `peer` where to one way of it. */
export type Fault = Span & {
  kind: string
  role?: string | undefined
  peer?: Peer | undefined
  /** When a process that was killed had exited: a busy machine takes a while to end it and to close its connections. */
  exited?: number
}

/** A request that was not answered with a result. A refusal by a limit is an answer. */
export type Failure = Span & {
  /** The role of the processes that it went to. */
  role: 'api' | 'gateway'
  /** The status, or the error of the connection. */
  text: string
}

// How long processes may take until they have connected again.
const recoveryMs = 4_000
// How long the load balancer may use a connection whose process is gone.
const noticeMs = 100

// A page of the load balancer, which is no JSON; a connection that breaks or gives no answer. Texts of operations begin with their
// name, those of gateway calls with the status.
const unanswered =
  /^(50[234] <|0 |200 TypeError: terminated|\S+: (SyntaxError: Unexpected token '<'|TypeError: (fetch failed|terminated)|TimeoutError))/

// Which requests need a peer, and how they may fail without it. The gateway knows its keys, confirms new ones over either
// way to the database and answers `eth_chainId` itself. Without Redis a process refuses by its limits, which is an answer.
// Nothing that is asked for needs the connection that only listens, or the receiver. Only what goes through the load balancer
// may fail without an answer of the service: without the pooler one of two processes is not ready, and the other one serves.
const needed: Partial<Record<Peer, { roles: readonly Failure['role'][]; text: RegExp }>> = {
  pooler: { roles: ['api'], text: /DATABASE_UNAVAILABLE/ },
  node: { roles: ['api'], text: /UPSTREAM_UNAVAILABLE/ },
  balancer: { roles: ['api', 'gateway'], text: unanswered },
}

const internalError = /^(\S+: )?500 /
// A process that cannot read keys or nonces must say so, and not that they are wrong.
const refusal = /^(\S+: )?4\d\d /

const needs = ({ role, text }: Failure, peer: Peer): boolean => {
  const need = needed[peer]
  return need?.roles.includes(role) === true && need.text.test(text)
}

/**
 * Why a request may have failed: it was in flight on a process that was killed, or on one that was paused or cut off from
 * its servers or from a peer that it needs, or it was an operation while the database was down. That one cannot wait for the database: after a start
 * of PostgreSQL no nonce of before is accepted (docs/decisions/authentication.md), so its caller has to sign it again.
 * The gateway knows its keys. A planned restart and Redis explain nothing. Last of all, a machine that stalled. Nothing
 * explains an internal error, and no cut that something is refused.
 */
export function explain(failure: Failure, faults: readonly Fault[]): string | undefined {
  if (internalError.test(failure.text)) return undefined
  const isDuring = ({ from, to }: Span, afterMs: number) =>
    from <= failure.to && to + afterMs >= failure.from
  const isPaused = faults.some(
    (fault) =>
      fault.kind === 'SIGSTOP beyond the lease' &&
      fault.role === failure.role &&
      isDuring(fault, 0),
  )
  // Requests that begin after the process has exited go to other processes.
  const wasKilled = faults.some(
    ({ kind, role, from, exited = from }) =>
      kind === 'kill -9' &&
      role === failure.role &&
      failure.from <= exited + noticeMs &&
      failure.to >= from,
  )
  if (wasKilled) return 'in_flight_on_killed'
  if (isPaused) return 'on_paused'
  const isCutOff = faults.some(
    (fault) =>
      fault.kind === 'partition' &&
      !refusal.test(failure.text) &&
      fault.role === failure.role &&
      (fault.peer === undefined || needs(failure, fault.peer)) &&
      isDuring(fault, recoveryMs),
  )
  if (isCutOff) return 'on_cut_off'
  if (failure.role === 'api' && hasLostDatabase(faults, failure)) return 'database_down'
  return faults.some((fault) => fault.kind === stalled && isDuring(fault, recoveryMs))
    ? 'machine_stalled'
    : undefined
}

/** Whether gateways count without Redis, or without what it had counted. */
export const losesRedis = ({ kind, role, peer }: Fault): boolean =>
  kind.startsWith('Redis') ||
  (kind === 'partition' && role === 'gateway' && (peer === undefined || peer === 'redis'))

/** Whether the database was down, or processes had no connection to it yet. */
export const hasLostDatabase = (faults: readonly Fault[], { from, to }: Span): boolean =>
  faults.some(
    (fault) =>
      /^(PostgreSQL|PgBouncer)/.test(fault.kind) &&
      fault.from <= to &&
      fault.to + recoveryMs >= from,
  )

/** Whether a gateway was without Redis, or had no connection to it yet. */
export const hasLostRedis = (faults: readonly Fault[], { from, to }: Span): boolean =>
  faults.some((fault) => losesRedis(fault) && fault.from <= to && fault.to + recoveryMs >= from)

const stalled = 'machine stalled'
const beatMs = 50
// A probe of the load balancer has two seconds, and two of them fail when nothing runs for so long.
const stallMs = 500

/**
 * Writes down when the machine gave this process no time, as on one that is shared or overloaded: processes that do not
 * run cannot answer. On a machine with room there is none, and nothing is explained by it.
 */
export function watchStalls(faults: Fault[]): { stop(): void } {
  let last = Date.now()
  const timer = setInterval(() => {
    const now = Date.now()
    if (now - last > beatMs + stallMs)
      faults.push({ kind: stalled, from: last, to: now, role: undefined })
    last = now
  }, beatMs)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}

/** Whether the machine stalled in a time. */
export const hasStalled = (faults: readonly Fault[], { from, to }: Span): boolean =>
  faults.some((fault) => fault.kind === stalled && fault.from <= to && fault.to >= from)
