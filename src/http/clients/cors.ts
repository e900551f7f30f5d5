import type { IncomingMessage, ServerResponse } from 'node:http'
import { idempotencyHeader, replayedHeader } from '../../contract/idempotency.ts'
import { authHeaders } from '../../contract/signature.ts'

/** Marks the answer for pages of allowed origins; true when the request was a preflight, and is answered. */
export type Cors = (request: IncomingMessage, response: ServerResponse) => boolean

/** What a page may send beside what every page may. */
const allowedHeaders = [
  ...['content-type', 'x-request-id', 'authorization', idempotencyHeader],
  ...Object.values(authHeaders),
].join(', ')

/** What a page may read beside the body. */
const exposedHeaders = `x-request-id, retry-after, ratelimit, ratelimit-policy, x-portolan-cache, x-portolan-block, ${replayedHeader}`

/** Browsers keep the answer to a preflight no longer than this. */
const maxAgeSeconds = 7_200

/**
 * Cross-origin rules for pages that call the operations or the gateway. Nothing here grants access:
 * every call carries a signature or a key of its own, and no cookie is ever looked at.
 */
export function createCors(options: {
  /** `*`, an origin, or one with `*` instead of its port. */
  origins: readonly string[]
  /** Whether the address is one that pages may call. */
  isOpen(url: string): boolean
}): Cors {
  const { origins, isOpen } = options
  const isAny = origins.includes('*')
  const isAllowed = createIsAllowed(origins)

  return (request, response) => {
    const origin = originOf(request.rawHeaders)
    if (origin === undefined || !isOpen(request.url ?? '')) return false
    response.setHeader('vary', 'origin')
    if (!isAllowed(origin)) return false
    response.setHeader('access-control-allow-origin', isAny ? '*' : origin)
    if (request.method !== 'OPTIONS') {
      response.setHeader('access-control-expose-headers', exposedHeaders)
      return false
    }
    response.writeHead(204, {
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': allowedHeaders,
      'access-control-max-age': `${maxAgeSeconds}`,
    })
    response.end()
    return true
  }
}

/** Whether an origin is in a list of them. */
export function createIsAllowed(origins: readonly string[]): (origin: string) => boolean {
  const exact = new Set(origins)
  return (origin) =>
    exact.has('*') || exact.has(origin) || exact.has(origin.replace(/(?::\d{1,5})?$/, ':*'))
}

/** Read from the list as it came: the object of all headers would cost every gateway call more. */
function originOf(raw: readonly string[]): string | undefined {
  for (let index = 0; index < raw.length; index += 2)
    if (raw[index]?.length === 6 && raw[index]?.toLowerCase() === 'origin') return raw[index + 1]
  return undefined
}
