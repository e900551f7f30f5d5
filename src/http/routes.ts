// Which operation an address means: `/v1/{chain}/{Operation}` on the default network of a chain, and
// `/v1/{chain}/{network}/{Operation}` on any other. It knows the chains of the installation and the catalogue, and
// decides nothing else.

import { OperationError } from '../contract/errors/errors.ts'
import { type Entry, findOperation } from '../contract/operations/catalogue.ts'
import { type Service, services } from '../contract/variant.ts'
import { findNearest } from '../lib/nearest.ts'

/** A chain as addresses name it. */
export type RoutedChain = {
  /** The services whose operations it offers, by their place in the catalogue. */
  services: readonly Service[]
  networks: readonly string[]
  default_network: string
}

/** What an address means. */
export type Route = {
  entry: Entry
  /** Name of the chain; the service itself for administration. */
  chain: string
  /** Undefined for the default network. */
  network: string | undefined
}

/** Finds operations by their addresses. */
export type Routes = {
  /** Undefined where no operation has this address. */
  find(path: string): Route | undefined
  /** Why an address below `/v1/` has no operation. */
  refusal(path: string): OperationError
}

/** Routes whose chains can be replaced while they are used. */
export type LiveRoutes = Routes & { replace(chains: Readonly<Record<string, RoutedChain>>): void }

const shownLength = 64

const isService = (name: string): name is Service => Object.hasOwn(services, name)

/**
 * The addresses of the operations of an installation. The services of the specification keep their addresses
 * without a chain of their name: what is stored of it can still be read.
 */
export function createRoutes(chains: Readonly<Record<string, RoutedChain>>): Routes {
  const names = [...new Set([...Object.keys(services), ...Object.keys(chains)])]

  const servicesOf = (name: string): readonly Service[] =>
    (Object.hasOwn(chains, name) ? chains[name]!.services : undefined) ??
    (isService(name) ? [name] : [])

  const entryOf = (chain: string, operation: string): Entry | undefined => {
    for (const service of servicesOf(chain)) {
      const entry = findOperation(service, operation)
      if (entry) return entry
    }
    return undefined
  }

  const search = (path: string): Route | undefined => {
    const [start, version, chain = '', second = '', third, ...rest] = path.split('/', 7)
    if (start !== '' || version !== 'v1' || rest.length > 0) return undefined
    const entry = entryOf(chain, third ?? second)
    if (!entry) return undefined
    if (third === undefined) return { entry, chain, network: undefined }
    const known = Object.hasOwn(chains, chain) ? chains[chain]! : undefined
    if (!known?.networks.includes(second)) return undefined
    return { entry, chain, network: second === known.default_network ? undefined : second }
  }

  // Of addresses that exist, which are limited. A search takes 6 µs.
  const found = new Map<string, Route>()

  return {
    find(path) {
      const known = found.get(path) ?? search(path)
      if (known) found.set(path, known)
      return known
    },
    refusal(path) {
      const [, , chain = '', second = '', third] = path.split('/', 7)
      const unknown = (what: string, name: string, known: readonly string[]) => {
        const nearest = findNearest(name, known)
        const hint = nearest ? `Did you mean "${nearest}"?` : `There are ${known.join(', ')}.`
        return new OperationError('ROUTE_NOT_FOUND', {
          detail: `There is no ${what} "${name.slice(0, shownLength)}" here. ${hint}`,
        })
      }
      if (chain === '' || second === '') return new OperationError('ROUTE_NOT_FOUND')
      if (servicesOf(chain).length === 0) return unknown('chain', chain, names)
      if (third !== undefined) {
        const networks = Object.hasOwn(chains, chain) ? chains[chain]!.networks : []
        if (networks.length > 0 && !networks.includes(second))
          return unknown(`network of ${chain}`, second, networks)
      }
      return new OperationError('ROUTE_NOT_FOUND')
    },
  }
}

/** The same for chains that change: a call that began before a change keeps the route that it found. */
export function createLiveRoutes(chains: Readonly<Record<string, RoutedChain>>): LiveRoutes {
  let current = createRoutes(chains)
  return {
    find: (path) => current.find(path),
    refusal: (path) => current.refusal(path),
    replace: (next) => {
      current = createRoutes(next)
    },
  }
}
