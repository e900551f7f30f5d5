/** Longer values are no type that anything here takes; none of them is looked at any further. */
const maxLength = 100

/** The one type that operations take. */
export const operationTypes: ReadonlySet<string> = new Set(['application/json'])

/** The types under which clients send JSON-RPC. */
export const rpcTypes: ReadonlySet<string> = new Set([
  'application/json',
  'application/json-rpc',
  'application/jsonrequest',
])

/** Whether a content type is one of these, in UTF-8. Split manually: a pattern is easily quadratic. */
export function isJsonType(value: string, types: ReadonlySet<string>): boolean {
  if (value === 'application/json') return true
  if (value.length > maxLength) return false
  const [type = '', ...parameters] = value.toLowerCase().split(';')
  if (!types.has(type.trim())) return false
  // An empty parameter, as behind a last semicolon, means nothing (RFC 9110, 5.6.6).
  const given = parameters.map((parameter) => parameter.trim()).filter(Boolean)
  return given.length === 0 || (given.length === 1 && isUtf8Charset(given[0] as string))
}

const isUtf8Charset = (parameter: string): boolean =>
  parameter === 'charset=utf-8' || parameter === 'charset="utf-8"'
