import type { TSchema } from 'typebox'
import { errors } from '../../src/contract/errors/errors.ts'
import { requestSchema, responseSchema } from '../../src/contract/operation.ts'
import { catalogue } from '../../src/contract/operations/catalogue.ts'
import { anySize } from '../../src/contract/operations/query.ts'
import {
  notificationTypes,
  operationalEventNames,
  operationalNotificationType,
} from '../../src/contract/records/states.ts'
import { authHeaders } from '../../src/contract/signature.ts'
import { type OnRecord, type Service, services } from '../../src/contract/variant.ts'

type Schema = {
  $ref?: string
  type?: string
  enum?: string[]
  const?: unknown
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  additionalProperties?: boolean
  description?: string
}

/**
 * The types of the contract as one module without run-time code, in place of `src/contract.ts` of the client. A
 * published package must not bring the schema library along.
 */
export function printTypes(): string {
  const records = new Map<string, string>()
  const sets = Object.keys(services).map((service) => printService(service as Service, records))
  return [
    '/** Names of the services. */',
    `export type Service = ${union(Object.keys(services))}`,
    '/** One bad field of a request. */',
    'export type FieldError = { field: string; reason: string; detail: string }',
    '/** Every reason for a failure. */',
    `export type Reason = ${union(Object.keys(errors))}`,
    printConstant('notificationTypes', notificationTypes),
    `export declare const operationalNotificationType: ${JSON.stringify(operationalNotificationType)}`,
    '/** The name of an operational event. */',
    `export type OperationalEventName = ${union(operationalEventNames)}`,
    printConstant('authHeaders', authHeaders),
    ...[...records].map(([name, type]) => `export type ${name} = ${type}`),
    '/** The operations of a service by name. */',
    'export type Catalogue<service extends Service> = {',
    '  [name in keyof Catalogues[service]]: Extract<Catalogues[service][name], Row>',
    '}',
    'type Row = { request: object; response: object }',
    `type Catalogues = ${printObject(sets)}`,
    '',
  ].join('\n')
}

const printConstant = (name: string, value: Readonly<Record<string, unknown>>): string => {
  const members = Object.entries(value).map(([key, one]) => `${key}: ${JSON.stringify(one)}`)
  return `export declare const ${name}: ${printObject(members)}`
}

function printService(service: Service, records: Map<string, string>): string {
  const suffix = service === 'admin' || service === 'q' ? '' : services[service]
  const onRecord: OnRecord = (name, resolve) => {
    const key = `${name}${suffix}`
    // Asked for before it is set, because its own records come first in the file.
    if (!records.has(key)) records.set(key, print(resolve() as Schema))
    return { $ref: key } as TSchema
  }
  const rows = catalogue
    .filter((entry) => entry.service === service)
    .map(({ name, row }) => {
      const request = print(requestSchema(row, service, onRecord) as Schema)
      const response = print(responseSchema(row, service, onRecord) as Schema)
      return `/** ${row.summary} */\n${name}: { request: ${request}; response: ${response} }`
    })
  return `${service}: ${printObject(rows)}`
}

function print(schema: Schema): string {
  if (schema.$ref) return schema.$ref
  if (schema.enum) return union(schema.enum)
  if (schema.items) return `Array<${print(schema.items)}>`
  if (schema.properties && schema.additionalProperties !== true)
    return printObject(
      Object.entries(schema.properties).map(([name, field]) => {
        const note = field.description ? `/** ${field.description} */\n` : ''
        const mark = schema.required?.includes(name) ? '' : '?'
        return `${note}${name}${mark}: ${print(field)}`
      }),
    )
  if (schema.anyOf) return schema.anyOf.map(print).join(' | ')
  if (schema.description === anySize) return 'number | bigint'
  return primitives[schema.type ?? ''] ?? 'unknown'
}

const primitives: Record<string, string> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
  object: 'Record<string, unknown>',
}

const union = (values: readonly string[]) =>
  values.map((value) => JSON.stringify(value)).join(' | ')

const printObject = (members: string[]) =>
  members.length === 0 ? 'Record<never, never>' : `{\n${members.join('\n').replace(/^/gm, '  ')}\n}`
