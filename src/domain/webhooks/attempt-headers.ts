/** A header of an attempt; null stands for a value that is not kept. */
type Header = [name: string, value: string | null]

/** What is kept of the headers of an answer. */
export const maxHeaderBytes = 4_096

/** Values that open something at the receiver: their names are enough to find a fault. */
const secretHeaders = new Set(['set-cookie', 'authorization', 'proxy-authorization'])

/**
 * The headers of a request as they are stored. Values of custom headers are not kept: they often are tokens of the
 * receiver. Headers that follow from the attempt are added when it is shown.
 */
export function packRequestHeaders(options: {
  custom: Readonly<Record<string, string>>
  signature: string
  traceparent: string | undefined
}): string {
  const { custom, signature, traceparent } = options
  const headers: Header[] = [
    ...(traceparent === undefined ? [] : [['traceparent', traceparent] as Header]),
    // Our own name is no secret, and is sent with most requests.
    ...Object.entries(custom).map(
      ([name, value]): Header => [
        name,
        name === 'user-agent' && value === userAgent ? value : null,
      ],
    ),
    ['webhook-signature', signature],
  ]
  return JSON.stringify(headers)
}

/** The name of the service in its requests. */
export const userAgent = 'Portolan'

/** The headers of an answer as they are stored: the first ones that fit. Null where there is none. */
export function packResponseHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | null {
  const kept: Header[] = []
  let bytes = 0
  for (const [name, values] of Object.entries(headers))
    for (const value of Array.isArray(values) ? values : [values ?? '']) {
      const header: Header = [name, secretHeaders.has(name.toLowerCase()) ? null : value]
      bytes += Buffer.byteLength(JSON.stringify(header)) + 1
      if (bytes > maxHeaderBytes) return JSON.stringify(kept)
      kept.push(header)
    }
  return kept.length > 0 ? JSON.stringify(kept) : null
}

const present = (headers: readonly Header[]) =>
  headers.map(([header_key, value]) => ({
    header_key,
    header_value: value ?? '',
    is_masked: value === null,
  }))

/** The headers of an attempt as they are listed; those of a version that stored none are empty. */
export const presentHeaders = (
  webhook_history_id: string,
  row: {
    attempt_time: Date
    request_headers: string | null
    response_headers: string | null
  },
) => ({
  request_headers:
    row.request_headers === null
      ? []
      : present([
          ...(JSON.parse(row.request_headers) as Header[]),
          ['content-type', 'application/json'],
          ['webhook-id', webhook_history_id],
          ['webhook-timestamp', `${Math.floor(row.attempt_time.getTime() / 1000)}`],
          ['accept-encoding', 'identity'],
        ]),
  response_headers: present(JSON.parse(row.response_headers ?? '[]') as Header[]),
})
