// The web console and the documents: the built files of the workspace `console`, served at the root of the service and
// at `/docs`. It uses the exchange only. It guarantees that a page of the service runs no inline script, loads nothing from another origin,
// and cannot be framed.

import type { IncomingMessage } from 'node:http'
import { OperationError } from '../../contract/errors/errors.ts'
import { type Exchange, send } from '../exchange.ts'
import { knowsTag } from '../known-tag.ts'
import type { Route } from '../server.ts'
import { type ConsoleFile, readConsole } from './files.ts'

/** No inline script or style, no other origin, no frames. `base-uri` allows the base path of the page itself. */
export const consolePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'self'; form-action 'none'"

const securityHeaders = {
  'content-security-policy': consolePolicy,
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
}

const notBuilt =
  '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Portolan</title></head><body><p>The console is not built: run "npm run build --workspace console" and start the service again.</p></body></html>\n'

// First segments of other routes: an unknown address below them is a 404, not a page.
const reserved: ReadonlySet<string> = new Set([
  ...['v1', 'docs', 'health', 'ready', 'status', 'openapi.json', 'dev', 'assets'],
])

/** The built console, read at the first request: without one the files are not kept in memory. */
export type ConsoleFiles = () => Promise<ReadonlyMap<string, ConsoleFile> | undefined>

/** Reads the built console. */
export function openConsole(options: { directory: string; basePath: string }): ConsoleFiles {
  const { directory, basePath } = options
  const rewrite = (html: string) =>
    html
      .replace('<base href="/">', `<base href="${basePath}/">`)
      .replace(
        '<meta name="portolan-base-path" content="">',
        `<meta name="portolan-base-path" content="${basePath}">`,
      )
      .replaceAll('="./', `="${basePath}/`)
  let reading: ReturnType<ConsoleFiles> | undefined
  return () => {
    const files = reading ?? readConsole(directory, rewrite)
    reading = files
    const forget = () => {
      reading = undefined
    }
    // Built after the start: looked for again.
    files.then((found) => found || forget(), forget)
    return files
  }
}

/** Sends the page of the console, which shows what its address names. */
export async function sendConsolePage(exchange: Exchange, read: ConsoleFiles): Promise<void> {
  const page = (await read())?.get('/index.html')
  if (page) return sendFile(exchange, page)
  const headers = { ...securityHeaders, 'content-type': 'text/html; charset=utf-8' }
  send(exchange, 404, { ...headers, 'cache-control': 'no-store' }, notBuilt)
}

/** What the pages load. */
export const assetRoutes = (read: ConsoleFiles): Route[] => [
  { path: '/assets/*', name: 'console', handle: createHandle(read) },
]

const createHandle = (read: ConsoleFiles) => async (exchange: Exchange) => {
  const { path } = exchange
  if (!isRead(exchange.request))
    throw new OperationError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } })
  const own = (await read())?.get(path)
  if (own) return sendFile(exchange, own)
  if (!isPage(path)) throw new OperationError('ROUTE_NOT_FOUND')
  await sendConsolePage(exchange, read)
}

/** Serves the console. It must be the last route, because it takes every address that a browser may open. */
export function consoleRoutes(read: ConsoleFiles): Route[] {
  return [
    {
      path: '/*',
      name: 'console',
      // An unknown address that no browser opened as a page is no route, as without a console.
      matches: ({ path, request }) =>
        path === '/' ||
        (!isReserved(path) && (isPage(path) ? takesHtml(request) : isRead(request))),
      handle: createHandle(read),
    },
    ...assetRoutes(read),
  ]
}

const isReserved = (path: string): boolean => reserved.has(path.split('/', 2)[1] ?? '')

/** A file has a dot in its last segment; a page of the console has none. */
const isPage = (path: string): boolean =>
  !isReserved(path) && !path.slice(path.lastIndexOf('/')).includes('.')

const isRead = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD'

const takesHtml = ({ headers }: IncomingMessage): boolean =>
  /\btext\/html\b/i.test(headers.accept ?? '')

function sendFile(exchange: Exchange, file: ConsoleFile): void {
  const { headers } = exchange.request
  const own = {
    ...securityHeaders,
    'content-type': file.type,
    // Names with a hash never change; everything else is compared by its tag at each load.
    'cache-control': file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: file.etag,
    vary: 'accept-encoding',
  }
  if (knowsTag(headers['if-none-match'], file.etag)) {
    exchange.response.writeHead(304, own).end()
    return
  }
  const accepted = headers['accept-encoding']
  if (file.br && takes(accepted, 'br'))
    send(exchange, 200, { ...own, 'content-encoding': 'br' }, file.br)
  else if (file.gzip && takes(accepted, 'gzip'))
    send(exchange, 200, { ...own, 'content-encoding': 'gzip' }, file.gzip)
  else send(exchange, 200, own, file.plain)
}

const takes = (accepted: string | string[] | undefined, name: string): boolean =>
  `${accepted ?? ''}`.split(',').some((coding) => {
    const [given = '', ...parameters] = coding.split(';').map((part) => part.trim().toLowerCase())
    return given === name && !parameters.some((part) => /^q=0(?:\.0*)?$/.test(part))
  })
