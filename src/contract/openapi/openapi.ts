// OpenAPI 3.1 of an installation, made from the catalogue of operations. It uses `contract` only. Everything
// that the service accepts and answers is described; nothing else is.

import type { TSchema } from 'typebox'
import { errors } from '../errors/errors.ts'
import type { ErrorRow } from '../errors/row.ts'
import { idempotencyHeader, idempotencyHours } from '../idempotency.ts'
import { requestSchema, responseSchema } from '../operation.ts'
import { type Entry, pathOf } from '../operations/catalogue.ts'
import { authHeaders } from '../signature.ts'
import { type OnRecord, type Service, services } from '../variant.ts'
import { answerDocument, requestDocument } from './schema.ts'
import { webhookPaths } from './webhooks.ts'

const serviceNames: Record<Service, string> = {
  admin: 'Administration',
  q: 'Chain query (Q)',
  t: 'Wallets T (TON)',
  s: 'Wallets S (Sui)',
  p: 'Wallets P (Polkadot)',
  c: 'Wallets C (EVM)',
}

const intro = `Every operation is \`POST /v1/{chain}/{Operation}\` with a JSON object as its body, on the default network
of the chain; \`POST /v1/{chain}/{network}/{Operation}\` is the same on another one.

Sign each request with three headers: \`x-api-key\`; \`x-api-nonce\`, the current Unix time in
milliseconds, microseconds or nanoseconds, never used before; and \`x-api-signature\`, the lower-case hex
HMAC-SHA256, keyed with the api_secret, of nonce + METHOD + path + body.

Operations and fields marked \`x-extension\` go beyond the specification of the API. \`x-left-out\` describes what the service
takes for a field that is left out.`

const json = (schema: unknown, example?: object) => ({
  content: { 'application/json': { schema, ...(example && { example }) } },
})

/** An operation of one chain, and the other networks of that chain. */
export type DocumentedEntry = Entry & { chain?: string; networks?: readonly string[] }

/** The given operations as an OpenAPI 3.1 document. Only what works is handed in, so it never lies. */
export function openapi(
  entries: readonly DocumentedEntry[],
  serverUrl: string,
  /** By service and operation, as `c/GetWallet`. */
  examples: Readonly<Record<string, { request?: object; answer?: object }>> = {},
): Record<string, unknown> {
  const schemas: Record<string, unknown> = { Problem: problemSchema }
  const paths: Record<string, unknown> = {}
  for (const entry of entries) {
    const { service, name, row, chain = service } = entry
    const onRecord = componentsOf(schemas, service)
    const request = requestSchema(row, service, onRecord)
    const example = examples[`${chain}/${name}`] ?? examples[`${service}/${name}`]
    paths[pathOf(chain, name)] = {
      post: {
        operationId: `${chain.replaceAll('-', '_')}_${name}`,
        summary: row.summary,
        description: [row.description ?? row.summary, ...exclusions(row)].join(' '),
        tags: [tagOf(chain, service)],
        ...(row.extension && { 'x-extension': true }),
        ...(row.creates && { parameters: [idempotencyParameter] }),
        requestBody: {
          required: 'required' in request,
          ...json(requestDocument(request), example?.request),
        },
        responses: {
          200: {
            description: 'Done.',
            headers: { ...headersOf(200), ...(row.creates && replayed) },
            ...json(answerDocument(responseSchema(row, service, onRecord)), example?.answer),
          },
          ...failures,
        },
      },
    }
  }
  const used = [...new Set(entries.map(({ service }) => service))]
  const tags = new Map(
    entries.map(({ service, chain = service, networks = [] }) => {
      const name = tagOf(chain, service)
      const others = networks.map((network) => `/v1/${chain}/${network}/`).join(', ')
      const also = others && ` On its other networks: ${others}.`
      return [name, { name, description: `Operations at /v1/${chain}/.${also}` }]
    }),
  )
  const webhooks = webhookPaths(used, (service) => componentsOf(schemas, service))
  return {
    openapi: '3.1.1',
    info: {
      title: 'Portolan',
      version: '1.0.0',
      description: intro,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'The operator of this installation', url: serverUrl },
    },
    servers: [{ url: serverUrl }],
    tags: [
      ...tags.values(),
      ...(Object.keys(webhooks).length > 0
        ? [{ name: 'Notifications', description: 'What a webhook sends.' }]
        : []),
    ],
    security: [{ api_key: [], api_nonce: [], api_signature: [] }],
    paths,
    ...(Object.keys(webhooks).length > 0 && { webhooks }),
    components: { schemas, headers, responses: problemResponses(), securitySchemes },
  }
}

/** Viewers of the document rarely show `not`. */
const exclusions = ({ exclusive = [] }: Entry['row']): string[] =>
  exclusive.map(([one, other]) => `Give \`${one}\` or \`${other}\`, not both.`)

/** What the operations of a chain are listed under. */
const tagOf = (chain: string, service: Service): string =>
  chain === service ? serviceNames[service] : `${chain}: ${serviceNames[service]}`

/** Named records become components; a record that differs by variant carries the tag in its name. */
function componentsOf(schemas: Record<string, unknown>, service: Service): OnRecord {
  const suffix = service === 'admin' || service === 'q' ? '' : services[service]
  return (name, resolve) => {
    const key = `${name}${suffix}`
    // Set before resolving its fields, so that the order of components follows the first use.
    schemas[key] ??= null
    if (schemas[key] === null) schemas[key] = answerDocument(resolve())
    return { $ref: `#/components/schemas/${key}` } as TSchema
  }
}

const header = (name: string, description: string) => ({
  type: 'apiKey',
  in: 'header',
  name,
  description,
})

const textHeader = (description: string) => ({ description, schema: { type: 'string' } })

const idempotencyParameter = {
  name: idempotencyHeader,
  in: 'header',
  required: false,
  description: `A key chosen by the caller, such as a UUID. For ${idempotencyHours} hours the same key with the same body gives the same answer and creates nothing twice; another body is refused with 409. Keys count per credential.`,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

/** The headers of answers. */
const headers = {
  'x-request-id': textHeader('The id of the request, by which the operator finds it in the log.'),
  'Idempotency-Replayed': textHeader(
    '`true` when the answer is that of an earlier request with the same idempotency key.',
  ),
  RateLimit: textHeader(
    'The window that runs out first: `"second";r=99;t=1` is 99 calls left and one second until more.',
  ),
  'RateLimit-Policy': textHeader(
    'Every limited window, as `"hour";q=100000;w=3600`; absent where nothing is limited.',
  ),
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer', format: 'int64' } },
  'WWW-Authenticate': textHeader('How the request has to be authenticated.'),
}

/** The headers that an answer of this status can have. */
function headersOf(status: number): Record<string, unknown> {
  const names: (keyof typeof headers)[] = ['x-request-id', 'RateLimit', 'RateLimit-Policy']
  if (status === 429 || status === 503) names.push('Retry-After')
  if (status === 401) names.push('WWW-Authenticate')
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

const replayed = {
  'Idempotency-Replayed': { $ref: '#/components/headers/Idempotency-Replayed' },
}

const securitySchemes = {
  api_key: header(authHeaders.key, 'The api_key of a credential.'),
  api_nonce: header(
    authHeaders.nonce,
    'Unix time in milliseconds (13 digits), microseconds (16) or nanoseconds (19); each used once.',
  ),
  api_signature: header(
    authHeaders.signature,
    'Lower-case hex HMAC-SHA256, keyed with the api_secret, of nonce + METHOD + path + body.',
  ),
}

const rows: [string, ErrorRow][] = Object.entries(errors)
// Left out: statuses of HTTP itself (405, 408, 426, 431), and 501, because only operations that work are documented.
const statuses = [...new Set(rows.map(([, row]) => row.status))].filter(
  (status) => ![405, 408, 426, 431, 501].includes(status),
)
const failures = Object.fromEntries(
  statuses.map((status) => [status, { $ref: `#/components/responses/Problem${status}` }]),
)

const problemResponses = () =>
  Object.fromEntries(
    statuses.map((status) => {
      const reasons = rows.filter(([, row]) => row.status === status)
      return [
        `Problem${status}`,
        {
          description: reasons.map(([reason, row]) => `${reason}: ${row.title}.`).join(' '),
          headers: headersOf(status),
          content: {
            'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
          },
        },
      ]
    }),
  )

const problemSchema = {
  type: 'object',
  description: 'A failure, as in RFC 9457, with the canonical codes of AIP-193.',
  required: ['type', 'title', 'status', 'detail', 'code', 'reason', 'request_id'],
  properties: {
    type: { type: 'string', description: 'address of the page that explains the reason' },
    title: { type: 'string' },
    status: { type: 'integer', format: 'int64' },
    detail: { type: 'string' },
    code: { type: 'string', enum: [...new Set(rows.map(([, row]) => row.code))] },
    reason: { type: 'string', enum: Object.keys(errors) },
    request_id: { type: 'string' },
    trace_id: { type: 'string', description: 'where the request was traced (W3C Trace Context)' },
    server_time: { type: 'string', description: 'with CLOCK_SKEW: Unix time in milliseconds' },
    missing: {
      type: 'string',
      description:
        'with PERMISSION_DENIED the role, with SCOPE_MISSING the scope that is needed, with CLIENT_NETWORK_NOT_ALLOWED the address of the client',
    },
    errors: {
      type: 'array',
      description: 'every bad field of the request',
      items: {
        type: 'object',
        required: ['field', 'reason', 'detail'],
        properties: {
          field: { type: 'string' },
          reason: { type: 'string' },
          detail: { type: 'string' },
        },
      },
    },
  },
}
