import { lookup, Resolver } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import type { Reachable } from '../../lib/net/reachable.ts'

/** An address that a name stands for. */
export type Answer = { address: string; family: number }

/** Finds all addresses of a name. */
export type ResolveName = (hostname: string) => Promise<Answer[]>

/** The request would have reached what it must not reach. */
export class ForbiddenAddressError extends Error {
  override name = 'ForbiddenAddressError'
}

// Below the time limit of an attempt, so that a silent name server is reported as what it is.
const lookupTimeoutMs = 4_000

// Not getaddrinfo: that blocks one of few threads, and a name whose server is silent would keep the
// look-ups of all others waiting.
const publicNames: ResolveName = async (hostname) => {
  const resolver = new Resolver({ timeout: lookupTimeoutMs, tries: 1 })
  const [four, six] = await Promise.allSettled([
    resolver.resolve4(hostname),
    resolver.resolve6(hostname),
  ])
  const addresses = [four, six].flatMap((answer) =>
    answer.status === 'fulfilled' ? answer.value : [],
  )
  if (addresses.length === 0 && four.status === 'rejected') throw four.reason
  return addresses.map((address) => ({ address, family: isIP(address) }))
}

// Knows /etc/hosts and search domains, where the names of private receivers often are.
const allNames: ResolveName = (hostname) => lookup(hostname, { all: true })

/** The resolver that fits what may be reached. */
export const resolverFor = ({ hasPrivate }: Reachable): ResolveName =>
  hasPrivate ? allNames : publicNames

/**
 * A look-up for sockets: the addresses that it gives are the ones connected to, so that no other
 * answer can come between check and connect. One forbidden address refuses them all.
 */
export const createGuardedLookup =
  (reachable: Reachable, resolve: ResolveName): LookupFunction =>
  (hostname, options, callback) => {
    const checked = async (): Promise<Answer[]> => {
      const answers = await resolve(hostname)
      if (answers.length === 0)
        throw Object.assign(new Error('The name has no address.'), { code: 'ENODATA' })
      if (!answers.every(({ address }) => reachable.allows(address)))
        throw new ForbiddenAddressError('The name does not lead to public addresses only.')
      return answers
    }
    checked().then(
      (answers) => {
        if (options.all) callback(null, answers)
        else callback(null, answers[0]!.address, answers[0]!.family)
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, []),
    )
  }
