import { type AdminViews, adminRoutes } from '../http/admin.ts'
import { hostNames } from '../http/clients/trusted-host.ts'
import { type HttpServer, type ServerOptions, startServer } from '../http/server.ts'
import { hostInUrl } from '../lib/net/host-in-url.ts'
import { tryListen } from '../lib/net/try-listen.ts'
import type { Config } from './config/schema.ts'

/** Where `server.admin_listen` says that the operator's routes are; undefined when they are off. */
export function adminAddress({ server }: Config): { host: string; port: number } | undefined {
  const { admin_listen, port } = server
  if (admin_listen === 'off') return undefined
  // Any free port beside any free port, so that services in tests never meet.
  if (admin_listen === undefined)
    return { host: '127.0.0.1', port: port === 0 || port === 65_535 ? 0 : port + 1 }
  const colon = admin_listen.lastIndexOf(':')
  const host = admin_listen.slice(0, colon).replace(/^\[|\]$/g, '')
  return { host, port: Number(admin_listen.slice(colon + 1)) }
}

/** Why the configured address of the operator's routes cannot be used now. */
export async function adminListenFault(config: Config): Promise<Error | undefined> {
  const address = adminAddress(config)
  if (!address || config.server.admin_listen === undefined) return undefined
  const fault = await tryListen(address.host, address.port)
  return fault && adminListenError(config, fault)
}

/** Fails before the database is migrated: a start that cannot listen must not change what others use. */
export async function checkAddresses(config: Config): Promise<void> {
  const { host, port } = config.server
  const fault =
    (config.database.url && (await tryListen(host, port))) || (await adminListenFault(config))
  if (fault) throw fault
}

/** The operator's server, which is started after the public one. */
export type AdminListener = HttpServer & { admin_url: string }

/** Starts the operator's server; undefined when it is off. */
export async function startAdminListener(
  config: Config,
  views: AdminViews,
  options: Pick<ServerOptions, 'log' | 'ids' | 'onFinished' | 'shutdownTimeoutMs'>,
): Promise<AdminListener | undefined> {
  const address = adminAddress(config)
  if (!address) return undefined
  const url = `http://${hostInUrl(address.host)}`
  const hosts = hostNames([url, config.server.base_url])
  const start = (port: number) =>
    startServer({ ...options, host: address.host, port, routes: adminRoutes(views, hosts) })
  // The default address is only a proposal, so another port is taken where it is in use. A
  // configured one is meant.
  const server = await start(address.port).catch(async (error: NodeJS.ErrnoException) => {
    if (config.server.admin_listen !== undefined || error.code !== 'EADDRINUSE')
      throw adminListenError(config, error)
    const other = await start(0)
    options.log.warn(
      { port: other.address.port },
      `port ${address.port} is taken, so the routes for the operator are on another one; set server.admin_listen to choose`,
    )
    return other
  })
  return { ...server, admin_url: `${url}:${server.address.port}` }
}

/** The operator's routes cannot be opened; the message says what to do. */
export class AdminListenError extends Error {
  override name = 'AdminListenError'
}

function adminListenError({ server }: Config, cause: Error): AdminListenError {
  const where = server.admin_listen ?? 'its default'
  return new AdminListenError(
    `Cannot listen on server.admin_listen (${where}): ${cause.message}. Choose another address, or "off".`,
    { cause },
  )
}
