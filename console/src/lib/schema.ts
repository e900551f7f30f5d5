import { checksumProblem, lowerChecksum } from '@portolan/client'

/** The part of JSON Schema that requests of the service use. */
export type JsonSchema = {
  type?: string | readonly string[]
  properties?: Readonly<Record<string, JsonSchema>>
  required?: readonly string[]
  items?: JsonSchema
  enum?: readonly (string | number)[]
  const?: unknown
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  default?: unknown
  description?: string
  /** What the field is when it is left out. */
  'x-left-out'?: string
  anyOf?: readonly JsonSchema[]
  oneOf?: readonly JsonSchema[]
}

/** How a field is entered. */
export type FieldKind = 'text' | 'integer' | 'flag' | 'choice' | 'choices' | 'lines' | 'group'

/** One field of a form. */
export type FormField = {
  /** Names of the field and of what it is in, joined by dots, as errors name it. */
  path: string
  name: string
  kind: FieldKind
  required: boolean
  /** At least one of the fields that are marked so is needed. */
  needsOne: boolean
  description: string
  /** What the service takes when it is left out; empty where that is nothing, or is not said. */
  leftOut: string
  choices: readonly string[]
  pattern: string | undefined
  minimum: number | undefined
  maximum: number | undefined
  maxLength: number | undefined
  fields: readonly FormField[]
}

/** What is entered: a text, a check mark, or several choices, by the path of the field. */
export type FormValues = Readonly<Record<string, string | boolean | readonly string[]>>

/** A complaint about one field. */
export type FieldProblem = { field: string; detail: string }

/** The fields of the object that a schema describes. */
export function fieldsOf(schema: JsonSchema, parent = ''): FormField[] {
  const required = new Set(schema.required ?? [])
  const group = new Set((schema.anyOf ?? []).flatMap((option) => option.required ?? []))
  return Object.entries(propertiesOf(schema)).map(([name, property]) => {
    const path = parent ? `${parent}.${name}` : name
    const kind = kindOf(property)
    return {
      path,
      name,
      kind,
      required: required.has(name),
      needsOne: group.has(name),
      description: property.description ?? '',
      leftOut: property['x-left-out'] ?? '',
      choices: (property.enum ?? property.items?.enum ?? []).map(String),
      pattern: kind === 'lines' ? property.items?.pattern : property.pattern,
      minimum: property.minimum,
      maximum: property.maximum,
      maxLength: property.maxLength,
      fields: kind === 'group' ? fieldsOf(property, path) : [],
    }
  })
}

/** Alternatives are all offered; the service says when more than one is filled in. */
const propertiesOf = ({ properties, oneOf }: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  properties ?? Object.assign({}, ...(oneOf ?? []).map((option) => option.properties))

function kindOf(schema: JsonSchema): FieldKind {
  if (schema.enum) return 'choice'
  if (schema.items) return schema.items.enum ? 'choices' : 'lines'
  if (schema.properties || schema.oneOf) return 'group'
  if (schema.type === 'boolean') return 'flag'
  if (schema.type === 'integer' || schema.type === 'number') return 'integer'
  return 'text'
}

/** The defaults of a schema, and above them values that a page knows. */
export function initialValues(
  schema: JsonSchema,
  known: Readonly<Record<string, unknown>> = {},
): FormValues {
  const values: Record<string, string | boolean | readonly string[]> = {}
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    // Of one choice nothing is to be chosen.
    const only = property.enum?.length === 1 ? property.enum[0] : undefined
    const usual = schema.required?.includes(name) ? (property.default ?? only) : undefined
    const value = known[name] ?? usual
    if (value !== undefined) place(values, name, value)
  }
  return values
}

function place(values: Record<string, FormValues[string]>, path: string, value: unknown): void {
  if (typeof value === 'boolean') values[path] = value
  else if (Array.isArray(value)) values[path] = value.map(String)
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) place(values, `${path}.${name}`, inner)
  else values[path] = String(value)
}

/** The request that a form describes, and what is wrong with it. Empty fields are left out. */
export function requestOf(
  fields: readonly FormField[],
  values: FormValues,
): { request: Record<string, unknown>; problems: FieldProblem[] } {
  const problems: FieldProblem[] = []
  const request: Record<string, unknown> = {}
  for (const field of fields) {
    const value = enteredValue(field, values, problems)
    if (value !== undefined) request[field.name] = value
    else if (field.required) problems.push({ field: field.path, detail: 'is required' })
  }
  const group = fields.filter(({ needsOne }) => needsOne)
  if (group.length > 0 && group.every(({ name }) => request[name] === undefined))
    problems.push({
      field: group[0]!.path,
      detail: `one of ${group.map(({ name }) => name).join(', ')} is needed`,
    })
  return { request, problems }
}

function enteredValue(field: FormField, values: FormValues, problems: FieldProblem[]): unknown {
  const value = values[field.path]
  const complain = (detail: string) => problems.push({ field: field.path, detail })
  if (field.kind === 'group') {
    const inner = requestOf(field.fields, values)
    // A group that nothing is entered in is left out; its own required fields do not count then.
    if (Object.keys(inner.request).length === 0) return undefined
    problems.push(...inner.problems)
    return inner.request
  }
  if (field.kind === 'flag') return value === true ? true : undefined
  if (field.kind === 'choices') return Array.isArray(value) && value.length > 0 ? value : undefined
  if (field.kind === 'lines') {
    const lines = (Array.isArray(value) ? value : String(value ?? '').split(/[\s,]+/)).filter(
      Boolean,
    )
    const found = lines.map((line) => inForm(field.pattern, line))
    const bad = found.findIndex((line) => !fits(field.pattern, line))
    if (bad >= 0)
      complain(
        `line ${bad + 1}${wrongChecksum(found[bad]!) ?? ` does not have the form: ${field.description}`}`,
      )
    return found.length > 0 ? found : undefined
  }
  const text = inForm(field.pattern, typeof value === 'string' ? value.trim() : '')
  if (text === '') return undefined
  if (field.kind === 'integer') return integerOf(field, text, complain)
  if (!fits(field.pattern, text))
    complain(checksumProblem(text) ?? (field.description || 'does not have the form'))
  return text
}

function integerOf(
  field: FormField,
  text: string,
  complain: (detail: string) => void,
): number | string {
  const number = Number(text)
  if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(number)) {
    complain('is a whole number')
    return text
  }
  const { minimum = -Infinity, maximum = Infinity } = field
  if (number < minimum || number > maximum) complain(`is between ${minimum} and ${maximum}`)
  return number
}

const fits = (pattern: string | undefined, text: string): boolean =>
  pattern === undefined || new RegExp(pattern, 'u').test(text)

// EVM addresses come with a checksum from explorers; the service takes lower case.
const inForm = (pattern: string | undefined, text: string): string =>
  fits(pattern, text) ? text : lowerChecksum(text)

const wrongChecksum = (text: string): string | undefined => {
  const problem = checksumProblem(text)
  return problem && `: ${problem}`
}

/** The complaints about a field, or about something in it: `addresses[3]` belongs to `addresses`. */
export const problemsOf = (problems: readonly FieldProblem[], path: string): FieldProblem[] =>
  problems.filter(({ field }) => field === path || field.startsWith(`${path}[`))
