import { isIP } from 'node:net'
import type { Reachable } from './reachable.ts'

/** What an address must be like before anything is sent there. */
export type EndpointRules = { reachable: Reachable; allowHttp: boolean }

/** An address that passed, or why it did not. */
export type CheckedEndpoint =
  | { url: URL; problem?: undefined }
  | { url?: undefined; problem: string }

const refused = (problem: string): CheckedEndpoint => ({ problem })

/** The host without the brackets of an IPv6 address. */
export const bareHost = (hostname: string): string =>
  hostname.startsWith('[') ? hostname.slice(1, -1) : hostname

/**
 * Checks an address that a user gave. It is parsed first and judged as parsed: `0x7f.1`,
 * `2130706433` and full-width digits are all spellings of 127.0.0.1 by then. What a name resolves
 * to is checked when a connection is made.
 */
export const checkEndpoint = (
  text: string,
  { reachable, allowHttp }: EndpointRules,
): CheckedEndpoint => {
  // The parser drops these silently, so that what is stored would not be what is called.
  if (/[\0-\x20\x7f]/.test(text)) return refused('Has spaces or control characters.')
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return refused('Not a valid URL.')
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return refused('Is no https URL.')
  if (url.protocol === 'http:' && !allowHttp) return refused('Must begin with https://.')
  if (url.username || url.password) return refused('Must not have a user name or password.')
  const port = Number(url.port || 443)
  if (url.port && port < 1024 && port !== 80 && port !== 443)
    return refused(`Must not use port ${port}: 80, 443 and those from 1024 on are allowed.`)
  const host = bareHost(url.hostname)
  if (host.length === 0 || host.length > 253) return refused('Has no valid host.')
  if (isIP(host) && !reachable.allows(host)) return refused('Is not a public address.')
  return { url }
}
