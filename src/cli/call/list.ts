import { anyOfIn, requestSchema } from '../../contract/operation.ts'
import { catalogue, type Entry, findOperation } from '../../contract/operations/catalogue.ts'
import { type Service, services } from '../../contract/variant.ts'
import { hasHandler } from '../../domain/handlers.ts'
import { type GlobalOptions, print, type Shell } from '../shell.ts'
import { columnsOf, formatTable, wrapText } from '../table.ts'
import { findEntry, findService } from './find-entry.ts'
import type { Called } from './run.ts'

/** Lists the operations of all services or of one, or describes one operation. */
export async function runList(
  shell: Shell,
  called: Called,
  options: GlobalOptions = {},
): Promise<void> {
  const named = await servicesOf(shell, called.service, options)
  if (called.operation !== undefined) {
    // A chain with two services (C and Q): the one that has the operation.
    const service = named?.find((one) => findOperation(one, called.operation ?? ''))
    const entry = findEntry(service ?? named?.[0] ?? called.service, called.operation)
    print(shell, describe(entry, columnsOf(shell.stdout)))
    return
  }
  const shown = named ?? (called.service === undefined ? [] : [findService(called.service)])
  const entries = catalogue.filter(({ service }) => shown.length === 0 || shown.includes(service))
  const ready = entries.filter(hasHandler)
  print(
    shell,
    formatTable(
      ['SERVICE', 'OPERATION', 'WHAT IT DOES'],
      ready.map(({ service, name, row }) => [service, name, row.summary]),
      columnsOf(shell.stdout),
    ),
  )
  const rest = entries.length - ready.length
  if (rest > 0) print(shell, `\n${rest} more are specified and not in this version yet.`)
}

/** The services of a chain of the configuration, where it is not itself the name of a service. */
async function servicesOf(
  shell: Shell,
  at: string | undefined,
  options: GlobalOptions,
): Promise<readonly Service[] | undefined> {
  const [chain] = at?.split('/') ?? []
  if (chain === undefined || Object.hasOwn(services, chain)) return undefined
  // Loaded only for names that are no service: reading the configuration may fail, and the list
  // must not.
  const { listConfiguredChains } = await import('../configured-chains.ts')
  return listConfiguredChains(shell, options).find(({ name }) => name === chain)?.services
}

type Schema = {
  type?: unknown
  enum?: readonly unknown[]
  default?: unknown
  description?: string
  items?: Schema
}

function describe(entry: Entry, columns: number): string {
  const { service, name, row } = entry
  const schema = requestSchema(row, service)
  const required = new Set<string>(schema.required ?? [])
  const fields = Object.entries(schema.properties as Record<string, Schema>).map(
    ([field, part]) => [field, required.has(field) ? 'required' : '', typeText(part)],
  )
  const anyOf = anyOfIn(row, services[service])
  return [
    ...wrapText(`${service} ${name}: ${row.summary}`, columns),
    ...(row.description === undefined ? [] : wrapText(row.description, columns)),
    ...(row.role ? [`Needs the role ${row.role.replace('ROLE_', '').toLowerCase()}.`] : []),
    ...(hasHandler(entry) ? [] : ['Not in this version yet.']),
    '',
    fields.length === 0
      ? 'It takes no fields.'
      : formatTable(['FIELD', '', 'TYPE'], fields, columns),
    ...(anyOf.length === 0 ? [] : ['', `At least one of ${anyOf.join(', ')}.`]),
    ...(row.exclusive ?? []).map(([one, other]) => `Not ${one} together with ${other}.`),
  ].join('\n')
}

function typeText(schema: Schema): string {
  const type = schema.items ? `list of ${typeText(schema.items)}` : String(schema.type ?? 'any')
  const values = schema.enum ? `one of ${schema.enum.join(', ')}` : type
  const fallback = schema.default === undefined ? '' : ` (default ${schema.default})`
  return `${values}${fallback}${schema.description ? `: ${schema.description}` : ''}`
}
