// The documents of the service: `/openapi.json`, the reference and the guide at `/docs` (a part of the console), and the
// pages of the errors, which need no script. They are built once per base address and served with an entity tag, without
// a request to another origin.

import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { errors, OperationError } from '../../contract/errors/errors.ts'
import type { ErrorRow } from '../../contract/errors/row.ts'
import { type DocumentedEntry, openapi } from '../../contract/openapi/openapi.ts'
import { catalogue } from '../../contract/operations/catalogue.ts'
import type { Service } from '../../contract/variant.ts'
import { hasHandler } from '../../domain/handlers.ts'
import { findNearest } from '../../lib/nearest.ts'
import { isLocal } from '../clients/local.ts'
import { type Exchange, send } from '../exchange.ts'
import { knowsTag } from '../known-tag.ts'
import { get } from '../probes.ts'
import type { Route } from '../server.ts'
import { type ConsoleFiles, sendConsolePage } from '../web-console/routes.ts'

// The pages of the errors have no script.
const policy =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policy,
}

const assets: Record<string, { file: () => URL; type: string }> = {
  'page.css': ours('page.css', 'text/css'),
}

/** A chain of the installation as the documents describe it. */
export type DocumentedChain = {
  chain: string
  services: readonly Service[]
  /** Those beside the default one. */
  networks: readonly string[]
}

/** `/openapi.json`, `/docs`, the pages of the errors, and what they load. */
export function docsRoutes(
  baseUrl: () => string,
  /** The chains of this installation; another list when they changed. */
  chainsNow: () => readonly DocumentedChain[],
  /** Requests that succeed here. They name things of this installation, so only this machine gets them. */
  localRequests: (
    request: IncomingMessage,
  ) => Promise<Readonly<Record<string, object>>> | Readonly<Record<string, object>>,
  basePath: string,
  console: ConsoleFiles,
): Route[] {
  const based = (html: string) =>
    basePath === '' ? html : html.replaceAll('="/', `="${basePath}/`)
  const worksOf = ({ chain, services, networks }: DocumentedChain): DocumentedEntry[] =>
    catalogue
      .filter((entry) => services.includes(entry.service) && hasHandler(entry))
      .map((entry) => ({ ...entry, chain, networks }))
  // By name: all are known beforehand, so that callers cannot add entries.
  const kept = new Map<string, Promise<Document>>()
  let described = chainsNow()
  const currentChains = (): readonly DocumentedChain[] => {
    const chains = chainsNow()
    if (chains !== described) {
      described = chains
      local = undefined
      for (const name of kept.keys()) if (name.startsWith('openapi')) kept.delete(name)
    }
    return chains
  }
  const once = (name: string, make: () => Promise<Document>): Promise<Document> => {
    const found = kept.get(name) ?? make()
    kept.set(name, found)
    // A failed attempt is not kept.
    found.catch(() => kept.delete(name))
    return found
  }

  const sendPage = async (exchange: Exchange, name: string, make: () => string) =>
    sendDocument(exchange, await once(name, () => makeDocument(based(make()), pageHeaders)))

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

  const describe = (
    requests: Readonly<Record<string, object>>,
    chains: readonly DocumentedChain[] = currentChains(),
  ) => {
    const works = chains.flatMap(worksOf)
    return makeDocument(JSON.stringify(openapi(works, baseUrl(), examplesWith(requests))), {
      'content-type': 'application/json',
    })
  }
  // The requests of this machine change while the demo prepares them; the newest are kept.
  let local: { requests: string; document: Promise<Document> } | undefined
  const describeLocally = (found: Readonly<Record<string, object>>): Promise<Document> => {
    const requests = JSON.stringify(found)
    if (local?.requests !== requests) local = { requests, document: describe(found) }
    return local.document
  }

  return [
    get('/openapi.json', async (exchange) => {
      const chains = currentChains()
      const name = new URLSearchParams(exchange.target.split('?')[1]).get('chain')
      if (name !== null) {
        const chain = chains.find((known) => known.chain === name)
        if (!chain) {
          const known = chains.map((one) => one.chain)
          const nearest = findNearest(name.slice(0, 64), known)
          const hint = nearest ? `Did you mean "${nearest}"?` : `There are ${known.join(', ')}.`
          throw new OperationError('ROUTE_NOT_FOUND', {
            detail: `There is no chain "${name.slice(0, 64)}" here. ${hint}`,
          })
        }
        return sendDocument(exchange, await once(`openapi ${name}`, () => describe({}, [chain])))
      }
      const found = isLocal(exchange) ? await localRequests(exchange.request) : {}
      const document =
        Object.keys(found).length > 0 ? describeLocally(found) : once('openapi', () => describe({}))
      sendDocument(exchange, await document)
    }),
    ...['/docs', '/docs/api/*', '/docs/guide/*'].map((path) =>
      get(path, (exchange) => sendConsolePage(exchange, console)),
    ),
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

function ours(name: string, type: string) {
  return { file: () => new URL(name, import.meta.url), type }
}

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
  if (knowsTag(headers['if-none-match'], etag)) {
    exchange.response.writeHead(304, own).end()
    return
  }
  if (!takesGzip(headers['accept-encoding'])) send(exchange, 200, own, document.plain)
  else send(exchange, 200, { ...own, 'content-encoding': 'gzip' }, document.compressed)
}

const takesGzip = (accepted: string | undefined): boolean =>
  (accepted ?? '').split(',').some((coding) => {
    const [name = '', ...parameters] = coding.split(';').map((part) => part.trim().toLowerCase())
    const isRefused = parameters.some(
      (part) => part.startsWith('q=') && Number(part.slice(2)) === 0,
    )
    return (name === 'gzip' || name === '*') && !isRefused
  })

import recorded from './examples.json' with { type: 'json' }

/** A request and what it answered. */
type Example = { request: object; answer: object }

/** Recorded on a demo by `npm run record-examples`, by service and operation, as `c/GetWallet`. */
export const recordedExamples: Readonly<Record<string, Example>> = recorded

/** The recorded examples; requests that succeed on this installation replace the recorded ones. */
export const examplesWith = (
  requests: Readonly<Record<string, object>>,
): Readonly<Record<string, Partial<Example>>> => ({
  ...recordedExamples,
  ...Object.fromEntries(
    Object.entries(requests).map(([name, request]) => [
      name,
      { ...recordedExamples[name], request },
    ]),
  ),
})

const retries = {
  never: 'No: the same request fails again.',
  later: 'Yes, later.',
  after: 'Yes, after the time that `Retry-After` names.',
}

/** Every reason on one page. */
const errorsPage = (): string => {
  const rows = Object.entries(errors).map(
    ([reason, { status, code, title }]) =>
      `<tr><td><a href="/docs/errors/${reason}"><code>${reason}</code></a></td><td>${status}</td><td><code>${code}</code></td><td>${title}</td></tr>`,
  )
  return html(
    'Errors',
    '',
    `<main class="article"><h1>Errors</h1>
<p>A failed operation answers <code>application/problem+json</code>. Its <code>reason</code> is one of these; its <code>type</code> leads to the page of the reason.</p>
<table><tr><th>Reason</th><th>HTTP</th><th>Code</th><th>Meaning</th></tr>${rows.join('')}</table>
<p><a href="/docs">API reference</a></p></main>`,
  )
}

/** The page of one reason; undefined when there is no such reason. */
const errorPage = (reason: string): string | undefined => {
  if (!Object.hasOwn(errors, reason)) return undefined
  const row: ErrorRow = errors[reason as keyof typeof errors]
  return html(
    reason,
    '',
    `<main class="article"><h1>${row.title}</h1>
<p><code>${reason}</code>: HTTP ${row.status}, <code>${row.code}</code>; JSON-RPC ${row.rpc}.</p>
<p>${inline(row.help)}</p>
<p>Can a retry help? ${inline(retries[row.retry])}</p>
<p><a href="/docs/errors">All errors</a> · <a href="/docs">API reference</a></p></main>`,
  )
}

const inline = (text: string) => text.replaceAll(/`([^`]+)`/g, '<code>$1</code>')

const html = (title: string, head: string, body: string) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/docs/assets/page.css">${head}</head>
<body>${body}</body></html>
`
