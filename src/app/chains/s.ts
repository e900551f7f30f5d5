import { resolveSecret } from '../config/secrets.ts'
import type { Opener } from './opener.ts'

/** Variant S, on Sui. */
export const openS: Opener = async (config, { env, clock, log }) => {
  const { s } = config.chains
  const network = s?.networks[s.default_network]
  if (!s || !network) return undefined
  // The chain's libraries take half a second to load: only where they are needed.
  const { createSuiChain } = await import('../../chains/sui/chain.ts')
  const key = `chains.s.networks.${s.default_network}.upstreams`
  const chain = createSuiChain({
    clock,
    log,
    ...(network.chain_id !== undefined && { chainId: network.chain_id }),
    upstreams: network.upstreams.map((upstream) => ({
      url: resolveSecret(upstream.url, { env, key }),
      transport: upstream.transport,
      headers: Object.fromEntries(
        Object.entries(upstream.headers).map(([name, value]) => [
          name,
          resolveSecret(value, { env, key }),
        ]),
      ),
      priority: upstream.priority,
      ...(upstream.name !== undefined && { name: upstream.name }),
      ...(upstream.archive !== undefined && { archive: upstream.archive }),
      ...(upstream.rate_limit_per_second !== undefined && {
        requests_per_second: upstream.rate_limit_per_second,
      }),
    })),
  })
  return { network: s.default_network, chain }
}
