// Checks the body of a request against the row of its operation, and names every violation with its field, up to
// `maxErrors`. Handlers get declared fields only, with their defaults, in the type that the catalogue derives.

import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { Settings } from 'typebox/system'
import { joinPath } from '../lib/json/json.ts'
import { findNearest } from '../lib/nearest.ts'
import { type FieldError, OperationError } from './errors/errors.ts'
import { anyOfIn, requestSchema } from './operation.ts'
import type { Entry } from './operations/catalogue.ts'
import { services } from './variant.ts'

// TypeBox stops at 8 errors by default; a caller must see every bad address of a batch at once.
const maxErrors = 1000
Settings.Set({ maxErrors: maxErrors + 100 })

/** Checks a request body and returns its declared fields with their defaults. */
export type Check<request extends object = Record<string, unknown>> = (body: unknown) => request

/**
 * Makes the check of an operation's request. The schema is compiled at the first call: the whole
 * catalogue costs tens of milliseconds, which belong neither to `--help` nor to the start.
 */
export function createCheck<request extends object = Record<string, unknown>>(
  entry: Entry,
): Check<request> {
  const schema = requestSchema(entry.row, entry.service)
  const anyOf = anyOfIn(entry.row, services[entry.service])
  const { exclusive = [] } = entry.row
  const fields = Object.entries(schema.properties).map(
    ([name, property]) => [name, (property as { default?: unknown }).default] as const,
  )
  let validator: Validator | undefined
  return (body) => {
    validator ??= Compile(schema)
    if (!validator.Check(body)) {
      const found = validator
        .Errors(body)
        .flatMap((error) => describe(error, { body, schema, anyOf, exclusive }))
      throw invalidRequest(found.slice(0, maxErrors))
    }
    const checked: Record<string, unknown> = {}
    for (const [name, fallback] of fields) {
      const value = (body as Record<string, unknown>)[name] ?? fallback
      if (value !== undefined) checked[name] = value
    }
    // The validator has proved the type that the catalogue derives from the same schema.
    return checked as request
  }
}

/** The failure of bad fields, with a sentence that names the first ones. */
export function invalidRequest(errors: readonly FieldError[]): OperationError {
  const named = [...new Set(errors.map(({ field }) => field || 'the body'))]
  const rest = named.length > 5 ? ` and ${named.length - 5} more` : ''
  const detail = `Not valid: ${named.slice(0, 5).join(', ')}${rest}.`
  return new OperationError('INVALID_REQUEST', { errors, detail })
}

type SchemaError = ReturnType<Validator['Errors']>[number]

type ValidationContext = {
  body: unknown
  schema: TSchema
  anyOf: readonly string[]
  exclusive: readonly (readonly [string, string])[]
}

function describe(
  error: SchemaError,
  { body, schema, anyOf, exclusive }: ValidationContext,
): FieldError[] {
  const field = pathOf(error.instancePath)
  const at = (reason: string, detail: string) => [{ field, reason, detail }]
  // Each alternative of "at least one of" fails by itself; one message for all of them is made below.
  if (error.schemaPath.startsWith('#/anyOf/')) return []
  const excluded = exclusive[Number(/^#\/allOf\/(\d+)/.exec(error.schemaPath)?.[1])]
  switch (error.keyword) {
    case 'not':
      return excluded
        ? [{ field: excluded[1], reason: 'NOT_ALLOWED', detail: `Not with ${excluded[0]}.` }]
        : at('INVALID_TYPE', 'Is not valid.')
    case 'anyOf':
      if (error.instancePath !== '' || anyOf.length === 0)
        return at('INVALID_TYPE', 'Is not valid.')
      return anyOf.map((name) => ({
        field: name,
        reason: 'AT_LEAST_ONE_REQUIRED',
        detail: `At least one of ${anyOf.join(', ')} is required.`,
      }))
    case 'required':
      return error.params.requiredProperties.map((name) => ({
        field: field ? `${field}.${name}` : name,
        reason: 'REQUIRED',
        detail: 'Is required.',
      }))
    case 'boolean':
      return at('UNKNOWN_FIELD', unknownField(error, schema))
    // The field itself is reported as `boolean`, with its place.
    case 'additionalProperties':
      return []
    case 'type':
      return at('INVALID_TYPE', `Must be ${article(error.params.type)}.`)
    case 'pattern':
      return at('INVALID_FORMAT', formatHint(error, body, schema))
    case 'enum':
      return at('NOT_ALLOWED', `Must be one of ${error.params.allowedValues.join(', ')}.`)
    case 'minLength':
      return at('TOO_SHORT', `Must have at least ${count(error.params.limit, 'character')}.`)
    case 'maxLength':
      return at('TOO_LONG', `Must have at most ${count(error.params.limit, 'character')}.`)
    case 'minItems':
      return at('TOO_FEW', `Must have at least ${count(error.params.limit, 'item')}.`)
    case 'maxItems':
      return at('TOO_MANY', `Must have at most ${count(error.params.limit, 'item')}.`)
    case 'uniqueItems':
      return at('NOT_ALLOWED', 'Must not have an item twice.')
    case 'minimum':
      return at('OUT_OF_RANGE', `Must be at least ${error.params.limit}.`)
    case 'maximum':
      return at('OUT_OF_RANGE', `Must be at most ${error.params.limit}.`)
    default:
      return at('INVALID_FORMAT', `${error.message}.`)
  }
}

const count = (limit: number | bigint, thing: string) =>
  `${limit} ${thing}${Number(limit) === 1 ? '' : 's'}`

const article = (type: string | readonly string[]) => {
  const name = typeof type === 'string' ? type : type.join(' or ')
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`
}

/** Guesses among the fields of the object that has the unknown one, however deep it is. */
function unknownField(error: SchemaError, schema: TSchema): string {
  const parent = error.schemaPath.slice(1).replace(/\/additionalProperties$/, '')
  const { properties } = valueAt(schema, parent) as { properties: Record<string, TSchema> }
  const word = segments(error.instancePath).at(-1) ?? ''
  const meant = findNearest(word, Object.keys(properties))
  return meant ? `No such field. Did you mean ${meant}?` : 'No such field.'
}

/** Says the form in words, and the lower-case form when only the case is wrong (decision 6). */
function formatHint(
  error: SchemaError & { keyword: 'pattern' },
  body: unknown,
  schema: TSchema,
): string {
  const pattern = String(error.params.pattern)
  const value = valueAt(body, error.instancePath)
  if (typeof value === 'string') {
    const lower = value.toLowerCase()
    if (lower !== value && new RegExp(pattern, 'u').test(lower))
      return `Must be in lower case: ${lower}`
  }
  const { description } = valueAt(schema, error.schemaPath.slice(1)) as { description?: string }
  return description ? `Must be ${description} (${pattern}).` : `Must match ${pattern}.`
}

const segments = (pointer: string) =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))

// The body is an object, so that a number on the first level is a name.
const pathOf = (pointer: string) =>
  segments(pointer).reduce(
    (path, part) => joinPath(path, path && /^\d+$/.test(part) ? Number(part) : part),
    '',
  )

const valueAt = (body: unknown, pointer: string): unknown =>
  segments(pointer).reduce<unknown>(
    (value, part) => (value as Record<string, unknown> | undefined)?.[part],
    body,
  )
