import Type, { type Static, type TObject } from 'typebox'
import {
  type Fields,
  type OnRecord,
  type PropertiesIn,
  propertiesIn,
  type Service,
  services,
  type Tag,
} from './variant.ts'

/** One row of the specification's tables 4.1 to 4.4, as data. */
export type Operation = {
  summary: string
  /** Tags of the services that offer it: `TSPC`, `Q`, `A` … */
  services: string
  request: Fields
  response: Fields
  /** At least one of these request fields must be present; per tag where the services differ. */
  anyOf?: readonly string[] | Partial<Record<Tag, readonly string[]>>
  /** Pairs of request fields that are never given together. A flag that is false counts as left out. */
  exclusive?: readonly (readonly [string, string])[]
  /** The narrowest role that may call it; where this is absent, every role that has its access. */
  role?: 'ROLE_ADMIN' | 'ROLE_OWNER'
  /** Creates something: it takes an idempotency key. */
  creates?: true
  /** Beyond the specification (docs/decisions). */
  extension?: true
  /** More than the summary, for the API reference. */
  description?: string
}

/** Declares an operation and keeps its literal types. */
export const operation = <const row extends Operation>(row: row): row => row

/** Operations by name. */
export type Operations = Readonly<Record<string, Operation>>

/** A request as a caller writes it: fields with a default may be left out. */
export type Request<row extends Operation, tag extends Tag> = Static<
  TObject<PropertiesIn<row['request'], tag>>
>

/** The answer of an operation in one service. */
export type Response<row extends Operation, tag extends Tag> = Static<
  TObject<PropertiesIn<row['response'], tag>>
>

/** Names of the operations that a service offers. */
export type NamesIn<operations extends Operations, tag extends Tag> = {
  [name in keyof operations]: operations[name]['services'] extends `${string}${tag}${string}`
    ? name
    : never
}[keyof operations]

/** The fields of which at least one must be present, in one service. */
export function anyOfIn(row: Operation, tag: Tag): readonly string[] {
  if (row.anyOf === undefined) return []
  return (isList(row.anyOf) ? row.anyOf : row.anyOf[tag]) ?? []
}

/** The JSON Schema of a request; unknown fields are refused, because a typo must not be ignored. */
export function requestSchema(row: Operation, service: Service, onRecord?: OnRecord): TObject {
  const tag = services[service]
  const anyOf = anyOfIn(row, tag)
  const properties = propertiesIn(row.request, tag, onRecord)
  return Type.Object(properties, {
    additionalProperties: false,
    ...(anyOf.length > 0 && { anyOf: anyOf.map((name) => ({ required: [name] })) }),
    ...(row.exclusive && {
      allOf: row.exclusive.map((pair) => ({ not: together(pair, properties) })),
    }),
  })
}

/** An object that has both fields, flags as true. */
function together(
  pair: readonly [string, string],
  properties: Readonly<Record<string, { type?: unknown }>>,
) {
  const given = (name: string) => (properties[name]?.type === 'boolean' ? { const: true } : {})
  return {
    type: 'object',
    required: [...pair],
    // Also those of which nothing is said: linters refuse required fields that are not listed.
    properties: Object.fromEntries(pair.map((name) => [name, given(name)])),
  }
}

/** The JSON Schema of a 200 answer. */
export function responseSchema(row: Operation, service: Service, onRecord?: OnRecord): TObject {
  return Type.Object(propertiesIn(row.response, services[service], onRecord))
}

const isList = (value: unknown): value is readonly string[] => Array.isArray(value)
