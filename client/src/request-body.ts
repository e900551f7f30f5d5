import { lowerChecksum } from './checksum.ts'

/** The fields of requests that hold an address; a search may be for one. */
const addressFields: ReadonlySet<string> = new Set(['address', 'from', 'to', 'contract_address'])
const adminFields: ReadonlySet<string> = new Set(['query'])

/**
 * The text of a request. The service takes EVM addresses in lower case only; with a checksum they are how
 * people have them. One whose checksum is wrong is sent as it is, and refused.
 */
export const bodyOf = (at: string, request: unknown): string =>
  JSON.stringify(request, lowering(at === 'admin' ? adminFields : addressFields))

const lowering = (fields: ReadonlySet<string>) => (field: string, value: unknown) => {
  if (field === 'addresses' && Array.isArray(value)) return value.map(lower)
  return fields.has(field) ? lower(value) : value
}

const lower = (value: unknown): unknown =>
  typeof value === 'string' ? lowerChecksum(value) : value
