import { fileURLToPath } from 'node:url'
import { OperationError } from '../contract/errors/errors.ts'
import { services } from '../contract/variant.ts'
import { hostNames, isTrustedHost, onTrustedHost } from '../http/clients/trusted-host.ts'
import { type DevTools, devRoutes } from '../http/dev.ts'
import { type DocumentedChain, docsRoutes } from '../http/docs/routes.ts'
import type { Operations } from '../http/operations.ts'
import { get, probeRoutes } from '../http/probes.ts'
import type { Route } from '../http/server.ts'
import type { SignIn } from '../http/sign-in.ts'
import {
  assetRoutes,
  type ConsoleFiles,
  consoleRoutes,
  openConsole,
} from '../http/web-console/routes.ts'
import { hostInUrl } from '../lib/net/host-in-url.ts'
import { isLoopback } from '../lib/net/loopback.ts'
import type { Access } from './access.ts'
import type { Config } from './config/schema.ts'
import { variantServices, variantsOf } from './config/sections/chains.ts'
import { serverRoles } from './config/server-roles.ts'
import { follow } from './follow.ts'
import type { Roles } from './roles.ts'
import { createPublicStatus } from './status.ts'
import type { Wallets } from './wallets.ts'

/** What the routes of the public listener show. */
export type PublicParts = Pick<Access, 'authenticator' | 'keys'> & {
  version: string
  wallets: Pick<Wallets, 'problems'>
  /** The configuration that runs: a reload changes its chains, the log level and the origins. */
  current(): Config
  /** What this process answers. */
  roles: Roles
  operations: Operations
  developmentRules: boolean
  /** Present where local chains run. */
  local?:
    | {
        tools: DevTools
        examples(): Promise<Readonly<Record<string, object>>>
        signIn?: SignIn | undefined
      }
    | undefined
}

/**
 * The routes of the public listener besides gateway and event streams: operations, probes, documents, the tools of local
 * chains and the console. What the roles of the process do not include answers with a reason.
 */
export function publicRoutes(
  config: Config,
  { version, wallets, current, roles, operations, developmentRules, local, ...access }: PublicParts,
  state: { notReady(): Promise<string | undefined>; isStopping(): boolean; baseUrl(): string },
): Route[] {
  const { server } = config
  const { notReady, isStopping, baseUrl } = state
  // A page of another origin can reach a service on loopback by DNS rebinding; the Host header shows it.
  const publicHosts = hostNames([`http://${hostInUrl(server.host)}`, server.base_url])
  // Read at the first request, so that a process without the console keeps no files in memory.
  const files = openConsole({ directory: consoleDirectory, basePath: server.base_path })
  const isDevelopment = local !== undefined && developmentRules
  return [
    {
      path: '/v1/*',
      name: 'operations',
      handle: roles.has('api') ? operations.handle : notServed,
    },
    ...probeRoutes({
      notReady,
      ...{ roles: serverRoles, hasRole: (role) => roles.list.some((own) => own === role) },
      // The gateway serves known keys without the database, so it stays in the load balancer longer.
      gatewayNotReady: async () =>
        access.keys.isServing() && !isStopping() ? undefined : await notReady(),
      degraded: wallets.problems,
      status: createPublicStatus({ current, version, isStopping, problems: wallets.problems }),
    }),
    ...(roles.has('api') || roles.has('console')
      ? docsRoutes(
          baseUrl,
          follow(() => current().chains, documentedChains),
          (request) =>
            (isLoopback(server.host) && isTrustedHost(request, publicHosts) && local?.examples()) ||
            {},
          server.base_path,
          files,
        )
      : []),
    ...(isDevelopment
      ? devRoutes(local.tools, access.authenticator, publicHosts, local.signIn)
      : []),
    ...consoleOrDocs(config, { roles, files, hosts: isDevelopment ? publicHosts : undefined }),
  ]
}

/** The chains that the API reference describes, administration first. */
const documentedChains = (chains: Config['chains']): readonly DocumentedChain[] => [
  { chain: 'admin', services: ['admin'], networks: [] },
  ...Object.entries(chains)
    .map(([chain, settings]) => ({
      chain,
      services: variantsOf(chain, settings).map((variant) => variantServices[variant]),
      networks: Object.keys(settings.networks).filter((name) => name !== settings.default_network),
    }))
    .sort((a, b) => order.indexOf(a.services[0]!) - order.indexOf(b.services[0]!)),
]

// That of the catalogue, whatever the order of the configuration.
const order = Object.keys(services)

/** The built console, or the way to the documents where it is switched off. */
function consoleOrDocs(
  { server }: Config,
  options: { roles: Roles; files: ConsoleFiles; hosts: readonly string[] | undefined },
): Route[] {
  const { roles, files, hosts } = options
  if (!roles.has('console') && !roles.has('api')) return [get('/', notServed)]
  if (!server.console || !roles.has('console'))
    return [
      get('/', ({ response }) => {
        response.writeHead(302, { location: `${server.base_path}/docs` }).end()
      }),
      ...assetRoutes(files),
    ]
  const routes = consoleRoutes(files)
  return hosts ? onTrustedHost(routes, hosts) : routes
}

const consoleDirectory = fileURLToPath(new URL('../../console/dist', import.meta.url))

/** Answers what processes with other roles serve. */
const notServed = (): never => {
  throw new OperationError('ROLE_NOT_SERVED')
}
