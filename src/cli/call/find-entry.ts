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
  const elsewhere = serviceNames.filter((other) => name && findOperation(other, name))
  const others =
    elsewhere.length === 0 ? '' : ` It is an operation of the service ${elsewhere.join(', ')}.`
  throw usageError([`${first}${hint}${others}`, ...names.map((known) => `  ${known}`)].join('\n'))
}
