/** What a node is called: never more of its URL than host and port, because keys live in the rest. */
export const nameOf = ({ name, url }: { name?: string | undefined; url: URL }): string =>
  name ?? url.host

/** The headers of every request; credentials in the URL become the header they stand for. */
export function headersOf(url: URL, headers: Record<string, string>): Record<string, string> {
  const isSet = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
  if ((!url.username && !url.password) || isSet) return headers
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  return { ...headers, authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
}
