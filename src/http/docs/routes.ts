import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { catalogue } from '../../contract/catalogue.ts'
import { OperationError } from '../../contract/errors.ts'
import { openapi } from '../../contract/openapi.ts'
import type { Service } from '../../contract/variant.ts'
import { findHandler } from '../../domain/handlers.ts'
import { type Exchange, send } from '../exchange.ts'
import { isLocal } from '../local.ts'
import { get } from '../probes.ts'
import type { Route } from '../server.ts'
import { examplesWith } from './examples.ts'
import { errorPage, errorsPage, referencePage } from './pages.ts'

// Everything comes from this server: the reference works without the internet.
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const assets: Record<string, { file: () => URL; type: string }> = {
  'swagger-ui-bundle.js': swagger('swagger-ui-bundle.js', 'text/javascript'),
  'swagger-ui.css': swagger('swagger-ui.css', 'text/css'),
  'page.js': ours('page.js', 'text/javascript'),
  'page.css': ours('page.css', 'text/css'),
}

/** `/openapi.json`, `/docs`, the pages of the errors, and what they load. */
export function docsRoutes(
  baseUrl: () => string,
  /** Whether this installation has the chain of a service. */
  isOffered: (service: Service) => boolean,
  /** Requests that succeed here. They name things of this installation, so only this machine gets them. */
  localRequests: () => Readonly<Record<string, object>> = () => ({}),
): Route[] {
  const compressed = new Map<string, Buffer>()
  const works = catalogue.filter(
    ({ service, name }) => findHandler(service, name) && isOffered(service),
  )

  const sendPage = (exchange: Exchange, page: string | undefined) => {
    if (page === undefined) throw new OperationError('ROUTE_NOT_FOUND')
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
    }
    send(exchange, 200, headers, page)
  }

  const sendAsset = async (exchange: Exchange, name: string) => {
    const asset = Object.hasOwn(assets, name) ? assets[name] : undefined
    if (!asset) throw new OperationError('ROUTE_NOT_FOUND')
    let bytes = compressed.get(name)
    if (!bytes) {
      bytes = await promisify(gzip)(await readFile(asset.file()))
      compressed.set(name, bytes)
    }
    const headers = { 'content-type': `${asset.type}; charset=utf-8`, 'content-encoding': 'gzip' }
    send(exchange, 200, { ...headers, 'cache-control': 'max-age=3600' }, bytes)
  }

  return [
    get('/', ({ response }) => {
      response.writeHead(302, { location: '/docs' }).end()
    }),
    get('/openapi.json', (exchange) => {
      const examples = examplesWith(isLocal(exchange) ? localRequests() : {})
      const body = JSON.stringify(openapi(works, baseUrl(), examples))
      send(exchange, 200, { 'content-type': 'application/json' }, body)
    }),
    get('/docs', (exchange) => sendPage(exchange, referencePage())),
    get('/docs/errors', (exchange) => sendPage(exchange, errorsPage())),
    get('/docs/errors/*', (exchange) =>
      sendPage(exchange, errorPage(exchange.path.slice('/docs/errors/'.length))),
    ),
    get('/docs/assets/*', (exchange) =>
      sendAsset(exchange, exchange.path.slice('/docs/assets/'.length)),
    ),
  ]
}

function swagger(name: string, type: string) {
  return { file: () => new URL(import.meta.resolve(`swagger-ui-dist/${name}`)), type }
}

function ours(name: string, type: string) {
  return { file: () => new URL(name, import.meta.url), type }
}
