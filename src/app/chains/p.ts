import { resolveSecret } from '../config/secrets.ts'
import type { Opener } from './opener.ts'

/** Variant P stands on its own connections to the nodes, which need not be there at the start. */
export const openP: Opener = async (config, { env, clock }) => {
  const { p } = config.chains
  if (!p) return undefined
  // Its libraries load only where the chain is configured.
  const { createPolkadotChain } = await import('../../chains/polkadot/chain.ts')
  const { chain_id, ss58_prefix, upstreams } = p.networks[p.default_network]!
  const key = `chains.p.networks.${p.default_network}.upstreams`
  const chain = createPolkadotChain({
    clock,
    ...(chain_id !== undefined && { genesis: chain_id }),
    ...(ss58_prefix !== undefined && { ss58_prefix }),
    upstreams: upstreams.map(
      ({ url, name, headers, priority, archive, rate_limit_per_second }) => ({
        url: resolveSecret(url, { env, key }),
        priority,
        headers: Object.fromEntries(
          Object.entries(headers).map(([header, value]) => [
            header,
            resolveSecret(value, { env, key }),
          ]),
        ),
        ...(name !== undefined && { name }),
        ...(archive !== undefined && { archive }),
        ...(rate_limit_per_second !== undefined && { requests_per_second: rate_limit_per_second }),
      }),
    ),
  })
  return { network: p.default_network, chain }
}
