import { isChecksumAddress } from './checksum.ts'

/** The fields of requests that hold an address. */
const addressFields: ReadonlySet<string> = new Set(['address', 'from', 'to', 'contract_address'])

/**
 * The text of a request. The service takes EVM addresses in lower case only; with a checksum they are how
 * people have them. One whose checksum is wrong is sent as it is, and refused.
 */
export const bodyOf = (at: string, request: unknown): string =>
  at === 'admin' ? JSON.stringify(request) : JSON.stringify(request, lowered)

function lowered(field: string, value: unknown): unknown {
  if (field === 'addresses' && Array.isArray(value)) return value.map(lower)
  return addressFields.has(field) ? lower(value) : value
}

const lower = (value: unknown): unknown =>
  typeof value === 'string' && isChecksumAddress(value) ? value.toLowerCase() : value
