import Type, { type TArray, type TObject, type TSchema } from 'typebox'

/** Service names as in the path `/v1/{service}/{Operation}`, with the tag used in annotations. */
export const services = { admin: 'A', q: 'Q', t: 'T', s: 'S', p: 'P', c: 'C' } as const

/** A path segment: `admin`, `q`, or one of the wallet variants. */
export type Service = keyof typeof services

/** The services that track wallets; each has its own family of chains. */
export type WalletService = Exclude<Service, 'admin' | 'q'>

/** One letter per service; the wallet variants of the specification are T, S, P and C. */
export type Tag = (typeof services)[Service]

/** A field of the listed services only: `only('TSP', ...)`. */
export type Only<tags extends string, field> = { only: tags; field: field }

/** A field that every service has, with a schema of its own in each. */
export type Each<fields> = { each: fields }

/** A named record whose fields may be annotated. */
export type Rec<fields> = { record: string; fields: fields }

/** An array of annotated things. */
export type List<item> = { list: item }

/** What may stand for a field in the catalogue: a schema, or an annotation around one. */
export type Field =
  | TSchema
  | Only<string, unknown>
  | Each<Partial<Record<Tag, unknown>>>
  | Rec<Fields>
  | List<unknown>

/** The fields of a request, a response or a record. */
export type Fields = { readonly [name: string]: Field }

/** Marks a field as present in the listed services only. */
export const only = <const tags extends string, field extends Field>(
  tags: tags,
  field: field,
): Only<tags, field> => ({ only: tags, field })

/** Gives a field a different schema in each service. */
export const each = <fields extends Partial<Record<Tag, Field>>>(fields: fields): Each<fields> => ({
  each: fields,
})

/** A record of section 2, written once for all services. */
export const record = <fields extends Fields>(name: string, fields: fields): Rec<fields> => ({
  record: name,
  fields,
})

/** An array of records. */
export const list = <item extends Field>(item: item): List<item> => ({ list: item })

/** The schema that a field has in one service; `never` where the service does not have it. */
export type FieldIn<field, tag extends Tag> =
  field extends Only<infer tags, infer inner>
    ? tags extends `${string}${tag}${string}`
      ? FieldIn<inner, tag>
      : never
    : field extends Each<infer fields>
      ? tag extends keyof fields
        ? FieldIn<fields[tag], tag>
        : never
      : field extends Rec<infer fields>
        ? TObject<PropertiesIn<fields, tag>>
        : field extends List<infer item>
          ? FieldIn<item, tag> extends infer schema extends TSchema
            ? TArray<schema>
            : never
          : field

/** The properties that a table of fields has in one service. */
export type PropertiesIn<fields, tag extends Tag> = {
  [name in keyof fields as [FieldIn<fields[name], tag>] extends [never] ? never : name]: FieldIn<
    fields[name],
    tag
  > extends infer schema extends TSchema
    ? schema
    : never
}

/** How a named record becomes a schema: inline for checks, a reference in OpenAPI. */
export type OnRecord = (name: string, resolve: () => TObject) => TSchema

const inline: OnRecord = (_, resolve) => resolve()

/** Resolves a field for one service; undefined where the service does not have it. */
export function fieldIn(field: Field, tag: Tag, onRecord: OnRecord = inline): TSchema | undefined {
  if ('only' in field) {
    const { only: tags, field: inner } = field as Only<string, Field>
    return tags.includes(tag) ? fieldIn(inner, tag, onRecord) : undefined
  }
  if ('each' in field) {
    const inner = (field as Each<Partial<Record<Tag, Field>>>).each[tag]
    return inner && fieldIn(inner, tag, onRecord)
  }
  if ('record' in field) {
    const { record: name, fields } = field as Rec<Fields>
    return onRecord(name, () => Type.Object(propertiesIn(fields, tag, onRecord)))
  }
  if ('list' in field) {
    const item = fieldIn((field as List<Field>).list, tag, onRecord)
    return item && Type.Array(item)
  }
  return field as TSchema
}

/** Resolves a table of fields to the properties of one service. */
export function propertiesIn(
  fields: Fields,
  tag: Tag,
  onRecord: OnRecord = inline,
): Record<string, TSchema> {
  const properties: Record<string, TSchema> = {}
  for (const [name, field] of Object.entries(fields)) {
    const schema = fieldIn(field, tag, onRecord)
    if (schema) properties[name] = schema
  }
  return properties
}
