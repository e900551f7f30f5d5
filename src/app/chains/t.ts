import { resolveSecret } from '../config/secrets.ts'
import type { Opener } from './opener.ts'

/** Variant T has nodes of its own, which speak the toncenter HTTP API. */
export const openT: Opener = async (config, { env, clock, log }) => {
  const { t } = config.chains
  const network = t?.networks[t.default_network]
  if (!t || !network) return undefined
  const { createTonChain } = await import('../../chains/ton/chain.ts')
  const key = `chains.t.networks.${t.default_network}.upstreams`
  const chain = createTonChain({
    ...(network.chain_id !== undefined && { globalId: network.chain_id }),
    clock,
    log,
    upstreams: network.upstreams.map((upstream) => ({
      ...(upstream.name !== undefined && { name: upstream.name }),
      url: resolveSecret(upstream.url, { env, key }),
      headers: Object.fromEntries(
        Object.entries(upstream.headers).map(([name, value]) => [
          name,
          resolveSecret(value, { env, key }),
        ]),
      ),
      priority: upstream.priority,
      v3: upstream.v3,
      ...(upstream.v3_url !== undefined && {
        v3_url: resolveSecret(upstream.v3_url, { env, key }),
      }),
      ...(upstream.rate_limit_per_second !== undefined && {
        requests_per_second: upstream.rate_limit_per_second,
      }),
    })),
  })
  return { network: t.default_network, chain }
}
