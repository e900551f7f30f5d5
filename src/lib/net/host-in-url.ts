/** A host as an address to call: a wildcard is none, and an IPv6 address needs brackets. */
export function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
