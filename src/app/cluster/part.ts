// Several processes as one service. What a process gets from its supervisor, and how work is divided.

import { availableParallelism } from 'node:os'
import type { Limiter } from '../../domain/limits/limiter.ts'
import type { Config } from '../config/schema.ts'
import type { ServerRole } from '../config/server-roles.ts'
import type { DatabaseServer } from '../data-directory.ts'
import type { FilterPeers } from '../filter-peers.ts'
import type { NetworkSharing } from './network-sharing.ts'

/** What the app of one of several processes gets from its supervisor. */
export type ServicePart = {
  server: Pick<DatabaseServer, 'mode' | 'connection' | 'direct'>
  peers: FilterPeers
  sharing: NetworkSharing
  /** Resolves when all processes are ready to apply a new configuration; rejects when one refuses it. */
  ready(): Promise<void>
  /** Admits from what the supervisor grants; undefined where the process counts itself or with Redis. */
  limiter: Limiter | undefined
}

/** What a process is started with. */
export type PartPlan = {
  name: string
  /** Names it in ids of filters; different among all that run at the same time. */
  slot: number
  roles: readonly ServerRole[]
  /** How many processes serve requests; 1 for one that serves none. */
  shares: number
  /** How many processes call the nodes. */
  callers: number
}

/** How many processes serve requests; 1 means that the service is a single process. */
export function workersOf({ server }: Pick<Config, 'server'>): number {
  const { workers, roles } = server
  if (!roles.some((role) => requestRoles.includes(role))) return 1
  return workers === 'auto' ? Math.min(mostByItself, availableParallelism()) : workers
}

const mostByItself = 8
// An estimate of what a process needs with its cache. It only decides whether a service may grow.
const bytesPerProcess = 256 * 1024 * 1024

/** Whether every process listens on the port itself; elsewhere the supervisor accepts connections and passes them on. */
export const sharesPort = ({ server }: Pick<Config, 'server'>): boolean =>
  server.reuse_port && process.platform === 'linux'

/**
 * Whether the service begins as one process and becomes several when it is busy. Needs a port that processes share by
 * the system: elsewhere the supervisor itself listens for the others.
 */
export const growsByItself = (config: Pick<Config, 'server'>): boolean =>
  config.server.workers === 'auto' && sharesPort(config)

/** How many processes can serve requests with this much free memory, beside the one in the background. */
export const workersWithin = (workers: number, availableBytes: number): number =>
  Math.min(workers, Math.floor(availableBytes / bytesPerProcess) - 1)

/** The roles that answer requests. */
export const requestRoles: readonly ServerRole[] = ['api', 'gateway', 'console']

/**
 * The configuration of one process. What bounds the memory and the connections of the service is divided among the
 * processes that serve requests, and the rate of calls to a node among all; what bounds a single client stays.
 */
export function partConfig(
  config: Config,
  { roles, shares, callers }: PartPlan,
  port: number,
): Config {
  const { server, security, gateway, database, limits, redis } = config
  const share = (whole: number, least = 1) => Math.max(least, Math.ceil(whole / shares))
  return {
    ...config,
    server: {
      ...server,
      ...{ port, roles: [...roles], workers: 1, admin_listen: 'off' },
      connections_limit: share(server.connections_limit),
      body_bytes_limit: share(server.body_bytes_limit, 1_048_576),
    },
    chains: divideRates(config.chains, callers),
    gateway: { ...gateway, cache_bytes: Math.ceil(gateway.cache_bytes / shares) },
    database: {
      ...database,
      pool_size: share(database.pool_size, Math.min(4, database.pool_size)),
    },
    security: {
      ...security,
      auth_failures_burst: share(security.auth_failures_burst),
      auth_failures_per_second: security.auth_failures_per_second / shares,
    },
    // While Redis is unreachable, every process admits its own share.
    limits: { ...limits, ...(redis.url !== undefined && { replicas: limits.replicas * shares }) },
  }
}

/** A node counts the calls of all processes together. */
function divideRates(chains: Config['chains'], callers: number): Config['chains'] {
  const divide = (one: { rate_limit_per_second?: number }) => {
    const { rate_limit_per_second: rate } = one
    return rate === undefined ? one : { ...one, rate_limit_per_second: rate / callers }
  }
  const divided = Object.entries(chains).map(([tag, chain]) => {
    const networks = Object.entries(chain.networks).map(([name, network]) => [
      name,
      { ...network, upstreams: network.upstreams.map(divide) },
    ])
    return [tag, { ...chain, networks: Object.fromEntries(networks) }]
  })
  return Object.fromEntries(divided) as Config['chains']
}
