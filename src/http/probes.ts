import { OperationError } from '../contract/errors/errors.ts'
import { type Exchange, send } from './exchange.ts'
import { isTemporary } from './problems.ts'
import type { Route } from './server.ts'

/** What the probes ask of the service. */
export type Probes = {
  /** Undefined when requests can be served, otherwise why not. */
  notReady(): Promise<string | undefined>
  /** The same for the gateway alone, which serves known keys without the database. */
  gatewayNotReady(): Promise<string | undefined>
  /** The parts that a process can have, and whether this one has it. */
  roles: readonly string[]
  hasRole(role: string): boolean
  /** The networks that are not tracked although requests are served. */
  degraded?(): readonly Degraded[]
  /** What every client may know; it is asked of memory alone. */
  status(): Record<string, unknown>
}

/** A network that is not tracked. */
export type Degraded = { chain: string; network: string; health: string }

/** `/health`, `/ready`, `/ready/<role>` and a short `/status`. None of them needs a credential. */
export function probeRoutes(probes: Probes): Route[] {
  return [
    get('/health', (exchange) => sendJson(exchange, 200, { status: 'ok' })),
    get('/ready', async (exchange) => {
      const reason = await probes.notReady()
      if (reason) sendJson(exchange, 503, { status: 'not ready', reason })
      else sendJson(exchange, 200, { status: 'ready', ...detail(probes.degraded?.()) })
    }),
    ...probes.roles.map((role) =>
      get(`/ready/${role}`, async (exchange) => {
        const reason = await roleNotReady(probes, role)
        if (reason) sendJson(exchange, 503, { status: 'not ready', reason })
        else sendJson(exchange, 200, { status: 'ready' })
      }),
    ),
    get('/status', (exchange) => sendJson(exchange, 200, probes.status())),
  ]
}

const roleNotReady = async (probes: Probes, role: string): Promise<string | undefined> => {
  if (!probes.hasRole(role)) return `This process does not have the role ${role}.`
  return await (role === 'gateway' ? probes.gatewayNotReady() : probes.notReady())
}

// A status of 503 would take the whole service out of a load balancer because of one chain.
// Only which one it is: the reason may quote a node and belongs on the operator's port.
const detail = (all: readonly Degraded[] = []) => {
  const degraded = all.map(({ chain, network, health }) => ({ chain, network, health }))
  return degraded.length > 0 ? { degraded } : {}
}

/** A route that only reads. */
export function get(path: string, handle: Route['handle']): Route {
  return {
    path,
    name: path,
    handle: (exchange) => {
      if (exchange.method !== 'GET' && exchange.method !== 'HEAD')
        throw new OperationError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } })
      return handle(exchange)
    },
  }
}

/** Sends a value as JSON that must not be kept. */
export function sendJson(exchange: Exchange, status: number, value: unknown): void {
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    ...(isTemporary(status) && { 'retry-after': '1' }),
  }
  send(exchange, status, headers, `${JSON.stringify(value, null, 2)}\n`)
}
