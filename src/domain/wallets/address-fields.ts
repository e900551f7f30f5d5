import type { Family, Parsed } from '../../chains/chain.ts'
import type { FieldError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { distinctBytes, keyOf } from '../../lib/bytes.ts'

const take = (parsed: Parsed, field: string, reason: string): Buffer => {
  if (parsed.ok) return parsed.bytes
  throw invalidRequest([{ field, reason, detail: parsed.detail }])
}

/** The canonical bytes of an address field. */
export const readAddress = (family: Family, text: string, field = 'address'): Buffer =>
  take(family.parseAddress(text), field, 'INVALID_ADDRESS')

/** The same where the field may be missing. */
export const readOptionalAddress = (
  family: Family,
  text: string | undefined,
  field?: string,
): Buffer | undefined => (text === undefined ? undefined : readAddress(family, text, field))

/** The canonical bytes of a token field. */
export const readToken = (
  family: Family,
  text: string | undefined,
  field = 'token_address',
): Buffer | undefined =>
  text === undefined || !family.parseToken
    ? undefined
    : take(family.parseToken(text), field, 'INVALID_TOKEN')

/** The addresses of a batch, each once, and how errors name them. */
export type AddressBatch = {
  addresses: Buffer[]
  /** The errors of some of them, at their places in the request. */
  errorsFor(bad: Iterable<Buffer>, reason: string, detail: string): FieldError[]
}

/** Reads a batch and names every bad address at once. */
export const readAddresses = (family: Family, texts: readonly string[]): AddressBatch => {
  const parsed = texts.map((text) => family.parseAddress(text))
  const errors = parsed.flatMap((one, at) =>
    one.ok ? [] : [{ field: `addresses[${at}]`, reason: 'INVALID_ADDRESS', detail: one.detail }],
  )
  if (errors.length > 0) throw invalidRequest(errors)
  const bytes = parsed.map((one) => (one as Parsed & { ok: true }).bytes)
  // Errors of later checks name places in the request, although duplicates are removed.
  return {
    addresses: distinctBytes(bytes),
    errorsFor: (bad, reason, detail) => {
      const keys = new Set([...bad].map(keyOf))
      return bytes.flatMap((one, at) =>
        keys.has(keyOf(one)) ? [{ field: `addresses[${at}]`, reason, detail }] : [],
      )
    },
  }
}
