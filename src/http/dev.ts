import type { IncomingHttpHeaders } from 'node:http'
import type { FieldError } from '../contract/errors/errors.ts'
import { OperationError } from '../contract/errors/errors.ts'
import { authHeaders } from '../contract/signature.ts'
import { invalidRequest } from '../contract/validate.ts'
import type { Authenticator } from '../domain/access/authenticate.ts'
import { authorizeAdministration } from '../domain/access/authorize.ts'
import { parseJson } from '../lib/json/json.ts'
import { isLocal } from './clients/local.ts'
import { onTrustedHost } from './clients/trusted-host.ts'
import { type Exchange, readBody, send } from './exchange.ts'
import { sendJson } from './probes.ts'
import type { Route } from './server.ts'
import type { SignIn } from './sign-in.ts'

/** What the embedded mode offers beside the API: its local chains, driven manually. */
export type DevTools = {
  /** Undefined when the chain does not run here. */
  checkAddress(chain: string, address: string): string | undefined
  isRunning(chain: string): boolean
  /** A whole coin, in the smallest unit. */
  coin(chain: string): bigint
  /** The field that has the transaction identifier in records of the chain. */
  transactionField(chain: string): string
  /** Sends native coin; the transaction's hash as the variant prints it. */
  fund(chain: string, address: string, amount: bigint): Promise<string>
  reorganize(depth: number): Promise<void>
  /** The local nodes, and whether each makes blocks on request. */
  nodes(): { chain: string; is_running: boolean; can_mine: boolean }[]
  mine(chain: string, blocks: number): Promise<void>
  stopNode(chain: string): Promise<void>
  startNode(chain: string): Promise<void>
  /** Takes a webhook delivery; false when its signature is wrong. */
  receive(chain: string, headers: IncomingHttpHeaders, body: Buffer): Promise<boolean>
}

const bodyLimitBytes = 1_048_576
const maxDepth = 64
const maxBlocks = 1_000
const maxAmount = 2n ** 128n
const chainTags = ['c', 'q', 't', 's', 'p']

/**
 * `/dev/v1/…` of the embedded mode. Programs on the machine itself need no credential; others need an
 * administrator's, because their effects are visible to all tenants. A page of another site counts as neither.
 */
export function devRoutes(
  tools: DevTools,
  authenticator: Authenticator,
  /** Names of this service beside those of loopback. */
  hosts: readonly string[],
  /** Absent where the service does not listen on loopback only. */
  signIn?: SignIn,
): Route[] {
  const post = (path: string, name: string, handle: Route['handle']): Route => ({
    path,
    name,
    handle: (exchange) => {
      if (exchange.method !== 'POST')
        throw new OperationError('METHOD_NOT_ALLOWED', { headers: { allow: 'POST' } })
      return handle(exchange)
    },
  })
  const read = async (exchange: Exchange): Promise<Record<string, unknown>> => {
    const body = await readBody(exchange, bodyLimitBytes)
    // Also keeps pages of other origins out: they cannot send this type without asking first.
    if (!/^application\/json\b/i.test(exchange.request.headers['content-type'] ?? ''))
      throw new OperationError('UNSUPPORTED_MEDIA_TYPE')
    if (!isLocal(exchange)) await requireAdmin(exchange, body)
    const parsed = parseJson(body)
    if (parsed.ok && parsed.value !== null && typeof parsed.value === 'object')
      return parsed.value as Record<string, unknown>
    throw new OperationError('INVALID_JSON')
  }
  const requireAdmin = async ({ request, method, target, client }: Exchange, body: Buffer) => {
    const single = (name: string) => {
      const value = request.headers[name]
      return typeof value === 'string' ? value : undefined
    }
    const principal = await authenticator.authenticate({
      api_key: single(authHeaders.key),
      nonce: single(authHeaders.nonce),
      signature: single(authHeaders.signature),
      method,
      path: target,
      body,
      client,
    })
    authorizeAdministration(principal, client)
  }

  const chainOf = (chain: unknown): string => {
    const tag = `${chain ?? ''}`.toLowerCase()
    if (!chainTags.includes(tag)) throw invalid('chain', `is one of ${chainTags.join(', ')}`)
    if (!tools.isRunning(tag)) throw new OperationError('CHAIN_NOT_CONFIGURED')
    return tag
  }

  const routes = [
    ...(signIn
      ? [
          post('/dev/v1/sign-in', 'sign-in', async (exchange) => {
            if (!isLocal(exchange)) throw new OperationError('INVALID_SIGN_IN_CODE')
            const { code } = await read(exchange)
            const keys = typeof code === 'string' ? signIn.redeem(code) : undefined
            if (!keys) throw new OperationError('INVALID_SIGN_IN_CODE')
            sendJson(exchange, 200, keys)
          }),
        ]
      : []),
    post('/dev/v1/faucet', 'faucet', async (exchange) => {
      const body = await read(exchange)
      const chain = chainOf(body.chain)
      const { address } = body
      if (typeof address !== 'string') throw invalid('address', 'is required')
      const problem = tools.checkAddress(chain, address)
      if (problem !== undefined) throw invalid('address', problem)
      const amount = amountOf(body.amount) ?? tools.coin(chain)
      const transaction_hash = await tools.fund(chain, address, amount)
      sendJson(exchange, 200, {
        transaction_hash,
        // Under the name of the variant too.
        [tools.transactionField(chain)]: transaction_hash,
        amount: `${amount}`,
      })
    }),
    post('/dev/v1/reorg', 'reorg', async (exchange) => {
      const { chain = 'c', depth = 1 } = await read(exchange)
      if (chain !== 'c') throw invalid('chain', 'is c: no other local chain reorganizes')
      if (!tools.isRunning('c')) throw new OperationError('CHAIN_NOT_CONFIGURED')
      if (!Number.isInteger(depth) || Number(depth) < 1 || Number(depth) > maxDepth)
        throw invalid('depth', `is a number from 1 to ${maxDepth}`)
      await tools.reorganize(Number(depth))
      sendJson(exchange, 200, { depth })
    }),
    post('/dev/v1/mine', 'mine', async (exchange) => {
      const { chain = 'c', blocks = 1 } = await read(exchange)
      const tag = chainOf(chain)
      if (!Number.isInteger(blocks) || Number(blocks) < 1 || Number(blocks) > maxBlocks)
        throw invalid('blocks', `is a number from 1 to ${maxBlocks}`)
      await tools.mine(tag, Number(blocks))
      sendJson(exchange, 200, { blocks })
    }),
    post('/dev/v1/nodes', 'nodes', async (exchange) => {
      await read(exchange)
      sendJson(exchange, 200, { nodes: tools.nodes() })
    }),
    post('/dev/v1/node', 'node', async (exchange) => {
      const { chain, is_running } = await read(exchange)
      const tag = chainOf(chain)
      if (typeof is_running !== 'boolean') throw invalid('is_running', 'is true or false')
      const found = tools.nodes().find((node) => node.chain === tag)
      if (found?.is_running !== is_running)
        await (is_running ? tools.startNode(tag) : tools.stopNode(tag))
      sendJson(exchange, 200, { chain: tag, is_running })
    }),
    post('/dev/v1/sink/*', 'sink', async (exchange) => {
      const body = await readBody(exchange, bodyLimitBytes)
      const chain = exchange.path.slice('/dev/v1/sink/'.length)
      // No credential is needed: a delivery is proved by its signature.
      const isGenuine = await tools.receive(chain, exchange.request.headers, body)
      send(exchange, isGenuine ? 204 : 401, {}, '')
    }),
  ]
  return onTrustedHost(routes, hosts)
}

const invalid = (field: string, detail: string): OperationError =>
  invalidRequest([{ field, reason: 'INVALID_FORMAT', detail } satisfies FieldError])

/** In the smallest unit; undefined when none is given. */
function amountOf(value: unknown): bigint | undefined {
  if (value === undefined) return undefined
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? `${value}` : value
  const amount = typeof text === 'string' && /^\d{1,39}$/.test(text) ? BigInt(text) : 0n
  if (amount <= 0n || amount > maxAmount)
    throw invalid('amount', 'is a positive whole number in the smallest unit, as a string')
  return amount
}
