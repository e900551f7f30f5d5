import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { ApiError, type Methods, type Params } from './api-error.ts'
import type { Written } from './api-v2.ts'
import type { Faults } from './faults.ts'
import type { Plan, Server } from './servers.ts'

/** One address at which the chain answers. */
export type Endpoint = { port: number; stop(): Promise<void> }

/** What an endpoint answers with. */
export type Apis = { v2: Methods; v3: Methods; dev: Methods }

/** How an endpoint behaves. */
export type Manners = {
  faults: Faults
  server: Server
  /** The rate limit of the caller's plan. */
  plan: Plan
}

const mostBody = 4 * 1024 * 1024

/** Listens on the loopback. */
export async function listen(port: number, apis: Apis, manners: Manners): Promise<Endpoint> {
  const server = createServer((request, response) => {
    handle(apis, manners, request, response).catch(() => response.destroy())
  })
  server.keepAliveTimeout = 30_000
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : port,
    stop: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

type Asked = { table: keyof Apis; method: string; params: Params; rpc?: { id: unknown } }

async function handle(
  apis: Apis,
  { faults, server, plan }: Manners,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const reply = (status: number, text: string) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(text)
  }
  let asked: Asked | undefined
  try {
    asked = readAsked(request, await readBody(request))
    const { table, method, params } = asked
    if (table !== 'dev') {
      // The balancer in front of the servers answers this: with `result` in the place of `error`.
      if (!plan.admits(performance.now()))
        return reply(429, JSON.stringify({ ok: false, result: 'Ratelimit exceed', code: 429 }))
      const kinds = ['404', '429', '500', 'timeout', 'reset'] as const
      const fault =
        faults.meet(kinds, method) ?? (table === 'v3' ? faults.meet(kinds, 'v3') : undefined)
      if (fault?.kind === 'timeout') return
      if (fault?.kind === 'reset') return void request.socket.destroy()
      if (fault?.retryAfterSeconds !== undefined)
        response.setHeader('retry-after', fault.retryAfterSeconds)
      if (fault)
        throw new ApiError(Number(fault.kind), fault.kind === '429' ? 'Ratelimit exceed' : 'fault')
    }
    const methods = apis[table]
    const isThere = Object.hasOwn(methods, method) && (table !== 'v2' || server.has(method))
    const found = isThere ? methods[method] : undefined
    if (!found)
      throw table === 'v2'
        ? server.unknownMethod()
        : new ApiError(404, `method ${method} is not known`)
    // The server of v3 does not look at parameters that it does not know.
    const stranger = table !== 'v3' && Object.keys(params).find((key) => !found.takes.includes(key))
    if (stranger) throw server.unknownParameter(method, stranger)
    let result = write(await found.answer(params))
    if (faults.meet(['wrong_hash'], method)) result = falsify(result)
    if (table === 'v3') return reply(200, result)
    const rpc =
      asked.rpc && server.echoesId
        ? `,"jsonrpc":"2.0","id":${JSON.stringify(asked.rpc.id ?? null)}`
        : ''
    reply(200, `{"ok":true,"result":${result},"@extra":"0"${rpc}}`)
  } catch (error) {
    const code = error instanceof ApiError ? error.code : 500
    const message = error instanceof Error ? error.message : String(error)
    if (asked?.table === 'v3') return reply(code, JSON.stringify({ error: message }))
    const rpc = asked?.rpc && server.echoesId ? { jsonrpc: '2.0', id: asked.rpc.id ?? null } : {}
    // The handler of JSON-RPC in Python leaves the code out of the errors that it finds itself.
    const hasCode = code !== 422 || !asked?.rpc || !server.echoesId
    reply(code, JSON.stringify({ ok: false, error: message, ...(hasCode && { code }), ...rpc }))
  }
}

const write = (answer: unknown): string =>
  typeof answer === 'object' && answer !== null && 'written' in answer
    ? (answer as Written).written
    : JSON.stringify(answer)

/** Cells that do not have the hash that is beside them. */
const falsify = (result: string): string =>
  result.replace(
    /("transaction_id":\{[^}]*"hash":")(.)/g,
    (_, before: string, first: string) => before + (first === 'A' ? 'B' : 'A'),
  )

function readAsked(request: IncomingMessage, body: string): Asked {
  const url = new URL(request.url ?? '/', 'http://node')
  const path = url.pathname.split('/').filter((part) => part !== '')
  const query: Params = {}
  for (const key of url.searchParams.keys()) {
    const values = url.searchParams.getAll(key)
    query[key] = values.length > 1 ? values : values[0]
  }
  const json = body === '' ? {} : parse(body)
  if (path[0] === 'dev' && path[1] !== undefined)
    return { table: 'dev', method: path[1], params: { ...query, ...json } }
  const [api, version, ...rest] = path
  const method = rest.join('/')
  if (api !== 'api' || (version !== 'v2' && version !== 'v3') || method === '')
    throw new ApiError(404, 'not found')
  if (version === 'v3' || method !== 'jsonRPC')
    return { table: version, method, params: { ...query, ...json } }
  const params = (json.params ?? {}) as Params
  return { table: version, method: String(json.method), params, rpc: { id: json.id } }
}

function parse(body: string): Params {
  try {
    const value = JSON.parse(body)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {
    // Said below.
  }
  throw new ApiError(422, 'the body is not a JSON object')
}

async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of request) {
    size += part.length
    if (size > mostBody) throw new ApiError(413, 'the body is too large')
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}
