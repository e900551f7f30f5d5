import type { TSchema } from 'typebox'
import { responseSchema } from './operation.ts'
import type { Entry } from './operations/catalogue.ts'

/** Cuts a value down to what its schema declares. */
export type Projection<answer = unknown> = (value: unknown) => answer

/**
 * Makes the projection of an operation's answer. Handlers share one superset record for all
 * variants; here it becomes the variant's own, and no undeclared field can leak.
 */
export function createProjection<answer = unknown>(entry: Entry): Projection<answer> {
  // The table of handlers binds the answer to the catalogue, from which both types come.
  return projectionOf(responseSchema(entry.row, entry.service)) as Projection<answer>
}

type ObjectSchema = TSchema & {
  properties: Record<string, TSchema>
  additionalProperties?: boolean
}

function projectionOf(schema: TSchema): Projection {
  if ('properties' in schema) return objectProjection(schema as ObjectSchema)
  if ('items' in schema) {
    const item = projectionOf(schema.items as TSchema)
    return (value) => (Array.isArray(value) ? value.map(item) : value)
  }
  if ('anyOf' in schema) {
    const object = (schema.anyOf as TSchema[]).find((option) => 'properties' in option)
    return object ? projectionOf(object) : identity
  }
  return identity
}

function objectProjection(schema: ObjectSchema): Projection {
  if (schema.additionalProperties === true) return identity
  const fields = Object.entries(schema.properties).map(
    ([name, property]) => [name, projectionOf(property)] as const,
  )
  return (value) => {
    if (typeof value !== 'object' || value === null) return value
    const result: Record<string, unknown> = {}
    for (const [name, project] of fields) {
      const field = (value as Record<string, unknown>)[name]
      if (field !== undefined) result[name] = project(field)
    }
    return result
  }
}

const identity: Projection = (value) => value
