import type { Overrides } from '../../src/app/config/schema.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { type Answer, startTestApp, type Tenant, type TestApp } from '../helpers/app.ts'
import { waitFor } from '../helpers/wait-for.ts'

/** A service with a query chain. */
export type QueryApp = TestApp & {
  tenant: Tenant
  /** Calls an operation of Q. */
  query(operation: string, body: unknown): Promise<Answer>
}

/** Starts the service on these nodes and waits until it knows their head and what they can do. */
export async function startQueryApp(
  urls: readonly string[],
  { beside, clock, ...config }: Overrides & { beside?: TestApp; clock?: Clock } = {},
): Promise<QueryApp> {
  const upstreams = urls.map((url, index) => ({ url, name: `node-${index}` }))
  const networks = { mainnet: { upstreams } }
  const app = await startTestApp({
    ...(beside && { beside }),
    ...(clock && { clock }),
    config: { chains: { q: { networks } } as unknown as Overrides['chains'], ...config },
  })
  const tenant = await app.createTenant()
  await waitFor(
    'the service knows the nodes',
    async () => {
      const { json } = await app.admin('/status')
      const { head, upstreams: nodes } = json.chains.q.nodes.mainnet
      return (
        head !== null &&
        nodes.every(
          ({ state, capabilities }: { state: string; capabilities: string[] }) =>
            state === 'healthy' && capabilities.length > 0,
        )
      )
    },
    { timeoutMs: 45_000 },
  )
  return {
    ...app,
    tenant,
    query: (operation, body) => app.call(tenant.member, `q/${operation}`, body),
  }
}
