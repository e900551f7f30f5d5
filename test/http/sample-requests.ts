import type { TSchema } from 'typebox'
import { anyOfIn, requestSchema } from '../../src/contract/operation.ts'
import { catalogue, type Entry } from '../../src/contract/operations/catalogue.ts'
import { services } from '../../src/contract/variant.ts'

/** Fields of a request by name. */
export type Body = Record<string, unknown>

/** What the samples read of a schema. */
export type Shape = TSchema & {
  type?: string
  enum?: unknown[]
  pattern?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  items?: Shape
  properties?: Record<string, Shape>
  required?: string[]
}

/** Every operation, named as in its path: `admin/GetRateLimit`. */
export const operations: readonly (readonly [string, Entry])[] = catalogue.map(
  (entry) => [`${entry.service}/${entry.name}`, entry] as const,
)

/** The schema of an operation's request. */
export const shapeOf = ({ row, service }: Entry): Shape => requestSchema(row, service) as Shape

const texts = [
  'sample',
  '1',
  `0x${'1a'.repeat(20)}`,
  `0x${'2b'.repeat(32)}`,
  '2026-01-31',
  '2027-01-31T00:00:00Z',
  '0x',
  `0:${'3c'.repeat(32)}`,
]

/** A value that the schema accepts. */
export const sampleOf = (shape: Shape): unknown => {
  if (shape.enum) return shape.enum[0]
  switch (shape.type) {
    case 'boolean':
      return true
    case 'integer':
      return Math.max(shape.minimum ?? 0, 1)
    case 'array':
      return [sampleOf(shape.items as Shape)]
    case 'object':
      return Object.fromEntries(
        (shape.required ?? []).map((name) => [name, sampleOf(shape.properties?.[name] as Shape)]),
      )
    case 'string': {
      const pattern = new RegExp(shape.pattern ?? '', 'u')
      const text = texts.find((candidate) => pattern.test(candidate))
      if (text !== undefined) return text
    }
  }
  throw new Error(`no sample for ${JSON.stringify(shape)}`)
}

/** A request with all required fields, and the first of those of which one is needed. */
export const validRequest = (entry: Entry): Body => {
  const shape = shapeOf(entry)
  const names = [
    ...(shape.required ?? []),
    ...anyOfIn(entry.row, services[entry.service]).slice(0, 1),
  ]
  return Object.fromEntries(
    names.map((name) => [name, sampleOf(shape.properties?.[name] as Shape)]),
  )
}
