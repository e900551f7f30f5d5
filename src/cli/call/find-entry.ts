import { catalogue, type Entry, findOperation } from '../../contract/operations/catalogue.ts'
import { type Service, services } from '../../contract/variant.ts'
import { findNearest } from '../../lib/nearest.ts'
import { usageError } from '../cli-error.ts'

const serviceNames = Object.keys(services) as Service[]

/** The service of that name, or a refusal that says which there are. */
export function findService(name: string | undefined): Service {
  const found = serviceNames.find((service) => service === name)
  if (found) return found
  const known = `The services are ${serviceNames.join(', ')}.`
  throw usageError(
    name === undefined
      ? `Which service? ${known} "portolan call --list" shows their operations.`
      : `There is no service "${name}". ${known}`,
  )
}

/** The names of the operations of a service. */
export const operationNames = (service: Service): string[] =>
  catalogue.filter((entry) => entry.service === service).map(({ name }) => name)

const chainPattern = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\/[a-z0-9]+(?:-[a-z0-9]+)*)?$/

/**
 * Where a call goes, and its operation. A chain of a free name, or another network as in `base/sepolia`, may have any
 * operation of a chain: only the service that is called knows its variant.
 */
export function findCall(
  at: string | undefined,
  name: string | undefined,
): { at: string; entry: Entry } {
  if (at === undefined || !chainPattern.test(at))
    return { at: at ?? '', entry: findEntry(at, name) }
  // `base/sepolia`: the network does not change which operations there are.
  const [chain] = at.split('/')
  if (serviceNames.some((service) => service === chain))
    return { at, entry: findEntry(chain, name) }
  const entry = catalogue.find((row) => row.service !== 'admin' && row.name === name)
  if (entry) return { at, entry }
  const names = [
    ...new Set(catalogue.flatMap((row) => (row.service === 'admin' ? [] : [row.name]))),
  ]
  const meant = name === undefined ? undefined : findNearest(name, names)
  const first =
    name === undefined
      ? `Which operation of the chain ${at}?`
      : `No chain has an operation "${name}".${meant === undefined ? '' : ` Did you mean ${meant}?`}`
  throw usageError(`${first} "portolan call --list" shows them all.`)
}

/** The operation of that name, or a refusal with the nearest one and all others. */
export function findEntry(serviceName: string | undefined, name: string | undefined): Entry {
  const service = findService(serviceName)
  const entry = name === undefined ? undefined : findOperation(service, name)
  if (entry) return entry
  const names = operationNames(service)
  const meant = name === undefined ? undefined : findNearest(name, names)
  const first =
    name === undefined
      ? `Which operation of the service ${service}?`
      : `The service ${service} has no operation "${name}".`
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
  // A name that another service has is a common mistake: wallets are under c, credentials under
  // admin.
  const elsewhere = serviceNames.filter((other) => name && findOperation(other, name))
  const others =
    elsewhere.length === 0 ? '' : ` It is an operation of the service ${elsewhere.join(', ')}.`
  throw usageError([`${first}${hint}${others}`, ...names.map((known) => `  ${known}`)].join('\n'))
}
