import type { TSchema } from 'typebox'
import { patternLengths } from '../fields.ts'

type Json = Record<string, unknown>

/** No text of a request is longer than a body (`server.body_limit_bytes`). */
const bodyBytes = 1_048_576
/** RFC 3339 in UTC with milliseconds. */
const timestampLength = 24
const standards = ['erc20', 'erc721', 'erc1155']

/** The schema of a request as a document shows it. */
export const requestDocument = (schema: TSchema): unknown => show(schema, bodyBytes)

/** The schema of an answer as a document shows it. */
export const answerDocument = (schema: TSchema): unknown => show(schema, undefined)

/**
 * Says in the words of OpenAPI what the checks of the service say in other places: integers are int64, a
 * pattern bounds the length of a text, and of the token standards there is one. TypeBox keeps its own marks
 * in hidden properties; a document has only what JSON shows.
 */
function show(schema: TSchema, longest: number | undefined): unknown {
  return JSON.parse(JSON.stringify(schema), (_key, value: unknown) =>
    isSchema(value) ? completed(value, longest) : value,
  )
}

const isSchema = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

function completed(schema: Json, longest: number | undefined): Json {
  if (schema.type === 'integer') return { ...schema, format: 'int64' }
  if (schema.type === 'string' && !schema.enum && schema.maxLength === undefined) {
    const maxLength = lengthOf(schema) ?? longest
    return maxLength === undefined ? schema : { ...schema, maxLength }
  }
  if (schema.type !== 'object') return schema
  const { properties, additionalProperties, ...rest } = schema
  const entries = Object.entries((properties ?? {}) as Json)
  if (entries.map(([name]) => name).join() !== standards.join()) return schema
  const one = entries.map(([name, property]) => ({
    type: 'object',
    title: name,
    required: [name],
    properties: { [name]: property },
    ...(additionalProperties !== undefined && { additionalProperties }),
  }))
  // A request has to have one; an asset that is not a token has none.
  const none = { type: 'object', title: 'none', maxProperties: 0 }
  return { ...rest, oneOf: longest ? one : [...one, none] }
}

const lengthOf = ({ format, pattern }: Json): number | undefined =>
  format === 'date-time' ? timestampLength : patternLengths.get(String(pattern))
