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
  /** Names and values in turn. */
  custom: readonly string[]
  signature: string
  traceparent: string | undefined
}): string {
  const { custom, signature, traceparent } = options
  let packed = packedCustom.get(custom)
  if (packed === undefined) {
    packed = ''
    for (let at = 0; at < custom.length; at += 2) {
      const [name, value] = [custom[at]!, custom[at + 1]!]
      // Our own name is no secret, and is sent with most requests.
      const kept = name === 'user-agent' && value === userAgent ? value : null
      packed += `${JSON.stringify([name, kept] satisfies Header)},`
    }
    packedCustom.set(custom, packed)
  }
  const trace = traceparent === undefined ? '' : `["traceparent","${traceparent}"],`
  // Written out: neither value has a character that JSON would escape.
  return `[${trace}${packed}["webhook-signature","${signature}"]]`
}

// The same for all attempts of a receiver.
const packedCustom = new WeakMap<readonly string[], string>()

/** The name of the service in its requests. */
export const userAgent = 'Portolan'

type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>

/**
 * The headers of an answer as they are stored: the first ones that fit. Null where there is none. A receiver gives the
 * same ones in most answers of a second, and comparing costs less than packing.
 */
export function packResponseHeaders(receiver: object, headers: AnswerHeaders): string | null {
  const last = lastAnswers.get(receiver)
  if (last && isSame(last.headers, headers)) return last.packed
  const packed = packAll(headers)
  lastAnswers.set(receiver, { headers, packed })
  return packed
}

const lastAnswers = new WeakMap<object, { headers: AnswerHeaders; packed: string | null }>()

// Lists of values are never the same here; they are rare.
function isSame(one: AnswerHeaders, other: AnswerHeaders): boolean {
  const [names, others] = [Object.keys(one), Object.keys(other)]
  return (
    names.length === others.length &&
    names.every((name, at) => name === others[at] && one[name] === other[name])
  )
}

function packAll(headers: AnswerHeaders): string | null {
  const all: Header[] = []
  // Of what JSON makes of them at most: six bytes for a character, and some for the brackets.
  let most = 0
  for (const name of Object.keys(headers)) {
    const values = headers[name]
    for (const value of Array.isArray(values) ? values : [values ?? '']) {
      all.push([name, secretHeaders.has(name.toLowerCase()) ? null : value])
      most += 6 * (name.length + value.length) + 12
    }
  }
  if (all.length === 0) return null
  return JSON.stringify(most > maxHeaderBytes ? firstOf(all) : all)
}

/** The first headers that fit. */
function firstOf(headers: readonly Header[]): Header[] {
  let bytes = 0
  const end = headers.findIndex((header) => {
    bytes += Buffer.byteLength(JSON.stringify(header)) + 1
    return bytes > maxHeaderBytes
  })
  return end === -1 ? [...headers] : headers.slice(0, end)
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
