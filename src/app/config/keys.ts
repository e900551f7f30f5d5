import Type from 'typebox'
import { isReference } from './secrets.ts'

type UrlNotes = { description: string; unset?: string; example: string }

/** A secret text: a literal, `file:/path` or `env:NAME`; never printed. */
export const secretText = (notes: {
  description: string
  unset?: string
  example?: string
  pattern?: string
  expects?: string
}) =>
  Type.String({
    expects: 'a text that is not empty, or a `file:` or `env:` reference',
    minLength: 1,
    secret: true,
    ...notes,
  })

/** Headers that are sent with requests to a server of others. Names and values as RFC 9110 allows them: no line breaks. */
export const headerRecord = (notes: { description: string; example: Record<string, string> }) =>
  Type.Record(
    Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" }),
    secretText({
      description: 'Value of that header.',
      pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
      expects: 'a header value, or a `file:` or `env:` reference',
    }),
    { default: {}, entry: 'header', ...notes },
  )

/** An address that may hold a password or a key, or a reference to one. */
export const secretUrl = (
  schemes: readonly string[],
  notes: UrlNotes & { mask: 'password' | 'path' },
  other?: OtherForm,
) =>
  Type.Refine(
    Type.String({
      ...notes,
      secret: true,
      // The pattern is for editors; `isUrl` is what decides.
      pattern: `^(?:(?:${schemes.join('|')})://|(?:file|env):${other ? `|${other.pattern}` : ''})`,
      expects: `an address that starts with ${schemeList(schemes)}, ${other ? `${other.expects}, ` : ''}or a \`file:\` or \`env:\` reference`,
    }),
    (value) => isReference(value) || isUrl(value, schemes) || other?.matches(value) === true,
  )

/** A form of an address that is no URL. */
export type OtherForm = { pattern: string; expects: string; matches(text: string): boolean }

/** A public address of the service, without a trailing path. */
export const publicUrl = (schemes: readonly string[], notes: UrlNotes) =>
  Type.Refine(
    Type.String({
      ...notes,
      pattern: `^(?:${schemes.join('|')})://[^?#\\s]*[^/?#\\s]$`,
      expects: `an address that starts with ${schemeList(schemes)} and ends without \`/\`, query or fragment`,
    }),
    (value) => isUrl(value, schemes),
  )

const isUrl = (value: string, schemes: readonly string[]): boolean =>
  !/\s/.test(value) &&
  URL.canParse(value) &&
  schemes.includes(new URL(value).protocol.slice(0, -1)) &&
  // A path as host, as in http:///x, is a slip; PostgreSQL uses an empty host for its socket.
  (new URL(value).hostname !== '' || schemes.includes('postgres'))

const schemeList = (schemes: readonly string[]): string =>
  schemes.map((scheme) => `\`${scheme}://\``).join(' or ')
