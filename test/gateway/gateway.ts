import type { Overrides } from '../../src/app/config/schema.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { type Answer, startTestApp, type Tenant, type TestApp } from '../helpers/app.ts'
import { waitFor } from '../helpers/wait-for.ts'

/** A service with a gateway on the chain `c`. */
export type TestGateway = TestApp & {
  tenant: Tenant
  /** Sends a body to the gateway as it is. */
  post(body: string, options?: PostOptions): Promise<Answer>
  /** Calls a method and returns the JSON-RPC answer. */
  rpc(
    method: string,
    params?: unknown[],
    options?: PostOptions,
    // biome-ignore lint/suspicious/noExplicitAny: tests look at members of any answer
  ): Promise<any>
}

/** What may be other than usual. */
export type PostOptions = { key?: string; path?: string; headers?: Record<string, string> }

/** Starts the service on these nodes and waits until it knows their head. */
export async function startTestGateway(
  urls: readonly string[],
  { beside, clock, ...config }: Overrides & { beside?: TestApp; clock?: Clock } = {},
): Promise<TestGateway> {
  const upstreams = urls.map((url, index) => ({ url, name: `node-${index}` }))
  const networks = { mainnet: { upstreams } }
  const app = await startTestApp({
    ...(beside && { beside }),
    ...(clock && { clock }),
    config: { chains: { c: { networks } } as unknown as Overrides['chains'], ...config },
  })
  const tenant = await app.createTenant()
  const post = (body: string, { key, path, headers }: PostOptions = {}) =>
    app.send(path ?? `/c/mainnet/v1/${key ?? tenant.member.api_key}`, {
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
  await waitFor('the gateway knows the head', async () => {
    const { json } = await app.admin('/status')
    const { head, upstreams } = json.chains.c.nodes.mainnet
    return head !== null && upstreams.every((one: { state: string }) => one.state === 'healthy')
  })
  return {
    ...app,
    tenant,
    post,
    rpc: async (method, params = [], options) =>
      (await post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), options)).json,
  }
}
