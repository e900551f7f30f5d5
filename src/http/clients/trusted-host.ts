import type { IncomingMessage } from 'node:http'
import { OperationError } from '../../contract/errors/errors.ts'
import { isLoopback } from '../../lib/net/loopback.ts'
import type { Route } from '../server.ts'

/**
 * Whether a request was addressed to this service by a name that is its own. A page of a foreign site can
 * have its own name resolve to this machine (DNS rebinding): its requests then come from the browser's
 * machine and count as same-origin, and only `Host` and `Origin` still hold the foreign name. An address
 * in place of a name cannot be rebound; it must be the one that the connection was made to.
 */
export function isTrustedHost(request: IncomingMessage, names: readonly string[]): boolean {
  const { host, origin } = request.headers
  const local = plainAddress(request.socket.localAddress ?? '')
  const isOwn = (name: string | undefined) =>
    name !== undefined && (isLoopback(name) || name === local || names.includes(name))
  if (!isOwn(nameIn(`http://${host ?? ''}`))) return false
  return origin === undefined || isOwn(nameIn(origin))
}

/** The routes, closed to requests that name another host than one of these or loopback. */
export const onTrustedHost = (routes: readonly Route[], names: readonly string[]): Route[] =>
  routes.map((route) => ({
    ...route,
    handle: (exchange) => {
      if (!isTrustedHost(exchange.request, names)) throw new OperationError('HOST_NOT_ALLOWED')
      return route.handle(exchange)
    },
  }))

/** The host names of addresses, as `Host` would name them; wildcards name nothing. */
export const hostNames = (addresses: readonly (string | undefined)[]): string[] =>
  addresses.flatMap((address) => {
    const name = address === undefined ? undefined : nameIn(address)
    return name === undefined || name === '0.0.0.0' || name === '::' ? [] : [name]
  })

function nameIn(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined
  const { hostname, username, password } = new URL(address)
  if (hostname === '' || username !== '' || password !== '') return undefined
  return plainAddress(hostname.replace(/^\[|\]$/g, ''))
}

const plainAddress = (address: string) => address.toLowerCase().replace(/^::ffff:/, '')
