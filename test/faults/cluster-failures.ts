import type { Span } from './cluster-disturb.ts'

/** Something that was done to the cluster; `role` where it was done to one process. */
export type Fault = Span & { kind: string; role?: string | undefined }

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

/**
 * Why a request may have failed: it was in flight on a process that was killed, or on one that was paused or cut off from
 * its servers, or the database was down, without which operations cannot be answered. A planned restart and Redis explain
 * nothing.
 */
export function explain(failure: Failure, faults: readonly Fault[]): string | undefined {
  const isDuring = ({ from, to }: Span, afterMs: number) =>
    from <= failure.to && to + afterMs >= failure.from
  const isOn = (kind: string, afterMs: number) =>
    faults.some(
      (fault) => fault.kind === kind && fault.role === failure.role && isDuring(fault, afterMs),
    )
  // `from` is the moment of the kill; later requests go to other processes.
  const wasKilled = faults.some(
    ({ kind, role, from }) =>
      kind === 'kill -9' &&
      role === failure.role &&
      failure.from <= from + noticeMs &&
      failure.to >= from,
  )
  if (wasKilled) return 'in_flight_on_killed'
  if (isOn('SIGSTOP beyond the lease', 0)) return 'on_paused'
  if (isOn('partition', recoveryMs)) return 'on_cut_off'
  const isDown = faults.some(
    (fault) => /^(PostgreSQL|PgBouncer)/.test(fault.kind) && isDuring(fault, recoveryMs),
  )
  return isDown ? 'database_down' : undefined
}
