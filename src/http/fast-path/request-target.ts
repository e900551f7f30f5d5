import type { IncomingMessage } from 'node:http'

/** A host and port (RFC 9112, 3.2; RFC 3986, 3.2.2); an empty one is allowed. */
const authority = /^(?:\[[\w:.~!$&'()*+,;=-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d{0,5})?$/
const absoluteForm = /^https?:\/\/([^/?#]*)(.*)/is

/** Brings the target into its usual form and says what is wrong with it or with the host. */
export function headFault(request: IncomingMessage): string | undefined {
  if (!toOriginForm(request)) return 'The request target is malformed.'
  return hostFault(request.rawHeaders, request.httpVersion)
}

/** Whether the value of a `Host` header is one. */
export const isHost = (value: string): boolean => authority.test(value)

/** Says what is wrong with the `Host` headers of a request; undefined where nothing is (RFC 9112, 3.2). */
function hostFault(raw: readonly string[], httpVersion: string): string | undefined {
  let host: string | undefined
  for (let at = 0; at < raw.length; at += 2)
    if (raw[at]?.length === 4 && raw[at]?.toLowerCase() === 'host') {
      if (host !== undefined) return 'The header host is there more than once.'
      host = raw[at + 1]
    }
  if (host === undefined) return httpVersion === '1.1' ? 'The header host is missing.' : undefined
  return isHost(host) ? undefined : 'The header host is not a host and port.'
}

/**
 * Brings a target of the absolute form (RFC 9112, 3.2.2) into the form of all others, so that routes,
 * the gateway and signatures see one form only: a proxy would send the same. False where it is malformed.
 */
function toOriginForm(request: IncomingMessage): boolean {
  const target = request.url ?? '/'
  if (target.startsWith('/') || target === '*') return true
  const [, host, rest = ''] = absoluteForm.exec(target) ?? []
  // Names and passwords have no place in a request (RFC 9110, 4.2.4).
  if (!host || !isHost(host)) return false
  request.url = rest.startsWith('/') ? rest : `/${rest}`
  return true
}
