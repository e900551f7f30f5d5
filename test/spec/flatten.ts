import type { TSchema } from 'typebox'
import type { FieldTable, Said } from './notation.ts'

type Schema = {
  type?: string
  enum?: string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  [keyword: string]: unknown
}

const limits = [
  'default',
  'format',
  'pattern',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
] as const

/** A JSON Schema as a table of fields, in the words of notation.ts. */
export const flattenRequest = (schema: TSchema): FieldTable =>
  flatten(schema as Schema, '', (required) => (required ? { required } : {}))

/** The same for an answer, where fields are there unless they are optional. */
export const flattenResponse = (schema: TSchema): FieldTable =>
  flatten(schema as Schema, '', (required) => (required ? {} : { optional: true }))

function flatten(
  schema: Schema,
  prefix: string,
  presence: (required: boolean) => Said,
): FieldTable {
  const table: FieldTable = new Map()
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const path = `${prefix}${name}`
    table.set(path, { ...said(field), ...presence(schema.required?.includes(name) ?? false) })
    const inner = field.anyOf?.find((option) => option.properties) ?? field
    for (const [key, value] of flatten(inner, `${path}.`, presence)) table.set(key, value)
    if (!field.items) continue
    const isExtension = field['x-extension'] === true
    table.set(`${path}[]`, { ...said(field.items), ...(isExtension && { extension: true }) })
    for (const [key, value] of flatten(field.items, `${path}[].`, presence)) table.set(key, value)
  }
  return table
}

function said(field: Schema): Said {
  const result: Said = { type: typeOf(field) }
  for (const keyword of limits) if (keyword in field) result[keyword] = field[keyword]
  if (field.anyOf) Object.assign(result, said(field.anyOf[0]!), { type: typeOf(field) })
  if (field.enum) result.enum = field.enum
  if (field['x-extension']) result.extension = true
  return result
}

const typeOf = (field: Schema): string =>
  field.anyOf?.map(typeOf).join('|') ?? field.type ?? (field.enum ? 'string' : 'unknown')
