import type { GuardedFetch } from '../webhooks/guarded-fetch.ts'

/** What it takes to follow the address of a description. */
export type TokenDataTools = {
  fetch: Pick<GuardedFetch, 'request'>
  /** In place of `ipfs://`; without it such addresses are not followed. */
  ipfsGateway: string | undefined
}

/** The description may come later: a server failed or was not reached. */
export class TokenDataLaterError extends Error {
  override name = 'TokenDataLaterError'
}

// Bounds of what a server of a third party may cost: bytes in memory and in the row, seconds of a worker.
const longest = 256 * 1024
const timeoutMs = 15_000

/** The JSON text behind a token's URI; undefined where there is none, and there will be none. */
export async function fetchTokenData(
  uri: string,
  tools: TokenDataTools,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (/^data:/i.test(uri)) return readJson(readDataUri(uri))
  const url = toUrl(uri, tools.ipfsGateway)
  return url === undefined ? undefined : await download(url, tools, signal)
}

function toUrl(uri: string, ipfsGateway: string | undefined): string | undefined {
  const ipfs = /^ipfs:\/\/(?:ipfs\/)?(.+)$/i.exec(uri)
  if (ipfs) return ipfsGateway === undefined ? undefined : `${ipfsGateway}${ipfs[1]}`
  return /^https?:\/\//i.test(uri) ? uri : undefined
}

async function download(
  url: string,
  { fetch }: TokenDataTools,
  signal: AbortSignal,
): Promise<string | undefined> {
  const headers = ['accept', 'application/json']
  const limits = { timeoutMs, maxBytes: longest, signal }
  const answer = await fetch.request({ url, method: 'GET', headers, ...limits })
  const { status, body, truncated } = answer
  // Failures that may pass are retried; any other status means that there is no description.
  if (status >= 500 || status === 429 || status === 408)
    throw new TokenDataLaterError(`the server of the description answered ${status}`)
  return status === 200 && !truncated ? readJson(body) : undefined
}

/** The bytes of a `data:` URI (RFC 2397); many contracts leave the percent signs out. */
function readDataUri(uri: string): Buffer {
  const comma = uri.indexOf(',')
  const payload = uri.slice(comma + 1)
  if (comma < 0) return Buffer.alloc(0)
  if (/;base64$/i.test(uri.slice(0, comma))) return Buffer.from(payload, 'base64')
  try {
    return Buffer.from(decodeURIComponent(payload))
  } catch {
    return Buffer.from(payload)
  }
}

// Fatal, because PostgreSQL refuses text that is not UTF-8.
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The text, if it is a JSON object of a size that can be kept. */
function readJson(bytes: Buffer): string | undefined {
  if (bytes.length > longest) return undefined
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? text.trim()
      : undefined
  } catch {
    return undefined
  }
}
