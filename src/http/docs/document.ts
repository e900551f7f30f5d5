import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Exchange, send } from '../exchange.ts'

/** A document that is built once and then sent as it is. */
export type Document = {
  etag: string
  plain: Buffer
  compressed: Buffer
  headers: Readonly<Record<string, string>>
}

/** Builds a document; compressing is the expensive part and happens off the main thread. */
export async function makeDocument(
  body: string | Buffer,
  headers: Readonly<Record<string, string>>,
): Promise<Document> {
  const plain = Buffer.from(body)
  return {
    etag: `"${hash('sha256', plain, 'base64url').slice(0, 27)}"`,
    plain,
    compressed: await promisify(gzip)(plain),
    headers,
  }
}

/** Sends a document, or 304 when the caller has it. */
export function sendDocument(exchange: Exchange, document: Document): void {
  const { headers } = exchange.request
  const { etag } = document
  // Clients ask again each time and then mostly get 304: a new version shows at once.
  const own = { 'cache-control': 'no-cache', ...document.headers, etag, vary: 'accept-encoding' }
  if (knows(headers['if-none-match'], etag)) {
    exchange.response.writeHead(304, own).end()
    return
  }
  if (!takesGzip(headers['accept-encoding'])) send(exchange, 200, own, document.plain)
  else send(exchange, 200, { ...own, 'content-encoding': 'gzip' }, document.compressed)
}

// A proxy that compresses makes the tag a weak one (RFC 9110, 13.1.2: compared weakly).
const knows = (given: string | undefined, etag: string): boolean =>
  (given ?? '')
    .split(',')
    .some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)

const takesGzip = (accepted: string | undefined): boolean =>
  (accepted ?? '').split(',').some((coding) => {
    const [name = '', ...parameters] = coding.split(';').map((part) => part.trim().toLowerCase())
    const isRefused = parameters.some(
      (part) => part.startsWith('q=') && Number(part.slice(2)) === 0,
    )
    return (name === 'gzip' || name === '*') && !isRefused
  })
