import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { OperationError } from '../../contract/errors/errors.ts'
import { openapi } from '../../contract/openapi/openapi.ts'
import { catalogue } from '../../contract/operations/catalogue.ts'
import type { Service } from '../../contract/variant.ts'
import { findHandler } from '../../domain/handlers.ts'
import { isLocal } from '../clients/local.ts'
import type { Exchange } from '../exchange.ts'
import { get } from '../probes.ts'
import type { Route } from '../server.ts'
import { type Document, makeDocument, sendDocument } from './document.ts'
import { examplesWith } from './examples.ts'
import { errorPage, errorsPage, referencePage } from './pages.ts'

// Everything comes from this server: the reference works without the internet.
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policy,
}

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
  localRequests: (request: IncomingMessage) => Readonly<Record<string, object>> = () => ({}),
): Route[] {
  const works = catalogue.filter(
    ({ service, name }) => findHandler(service, name) && isOffered(service),
  )
  // By name: all are known beforehand, so that callers cannot add entries.
  const kept = new Map<string, Promise<Document>>()
  const once = (name: string, make: () => Promise<Document>): Promise<Document> => {
    const found = kept.get(name) ?? make()
    kept.set(name, found)
    // A failed attempt is not kept.
    found.catch(() => kept.delete(name))
    return found
  }

  const sendPage = async (exchange: Exchange, name: string, make: () => string) =>
    sendDocument(exchange, await once(name, () => makeDocument(make(), pageHeaders)))

  const sendAsset = async (exchange: Exchange, name: string) => {
    const asset = Object.hasOwn(assets, name) ? assets[name] : undefined
    if (!asset) throw new OperationError('ROUTE_NOT_FOUND')
    const headers = {
      'content-type': `${asset.type}; charset=utf-8`,
      'cache-control': 'max-age=3600',
    }
    const make = async () => makeDocument(await readFile(asset.file()), headers)
    sendDocument(exchange, await once(`asset ${name}`, make))
  }

  const describe = (requests: Readonly<Record<string, object>>) =>
    makeDocument(JSON.stringify(openapi(works, baseUrl(), examplesWith(requests))), {
      'content-type': 'application/json',
    })
  // The requests of this machine change while the demo prepares them; the newest are kept.
  let local: { requests: string; document: Promise<Document> } | undefined
  const describeLocally = (found: Readonly<Record<string, object>>): Promise<Document> => {
    const requests = JSON.stringify(found)
    if (local?.requests !== requests) local = { requests, document: describe(found) }
    return local.document
  }

  return [
    get('/', ({ response }) => {
      response.writeHead(302, { location: '/docs' }).end()
    }),
    get('/openapi.json', async (exchange) => {
      const found = isLocal(exchange) ? localRequests(exchange.request) : {}
      const document =
        Object.keys(found).length > 0 ? describeLocally(found) : once('openapi', () => describe({}))
      sendDocument(exchange, await document)
    }),
    get('/docs', (exchange) => sendPage(exchange, 'reference', referencePage)),
    get('/docs/errors', (exchange) => sendPage(exchange, 'errors', errorsPage)),
    get('/docs/errors/*', (exchange) => {
      const page = errorPage(exchange.path.slice('/docs/errors/'.length))
      if (page === undefined) throw new OperationError('ROUTE_NOT_FOUND')
      return sendPage(exchange, exchange.path, () => page)
    }),
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
