import type { FieldError } from '../../contract/errors/errors.ts'

// What the connection or the signature is made of, and what describes the body.
const reserved = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
])
const reservedPrefixes = ['proxy-', 'webhook-', 'x-forwarded-', 'sec-']

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// Spaces at the ends would be lost on the way; anything else than ASCII is read differently everywhere.
const text = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/

/** What is wrong with a header that a user wants to be sent; nothing when it can be. */
export const checkHeader = (header_key: string, header_value: string): FieldError[] => {
  const errors: FieldError[] = []
  const refuse = (field: string, detail: string) =>
    errors.push({ field, reason: 'INVALID_HEADER', detail })
  const name = header_key.toLowerCase()
  if (!token.test(header_key)) refuse('header_key', 'Is not the name of an HTTP header.')
  else if (reserved.has(name) || reservedPrefixes.some((prefix) => name.startsWith(prefix)))
    refuse('header_key', 'Is a header that the delivery itself sets.')
  if (!text.test(header_value))
    refuse('header_value', 'Must be printable ASCII, without spaces at its ends.')
  return errors
}
