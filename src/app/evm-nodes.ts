import type { PoolOptions } from '../chains/evm/pool/pool.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import type { Env } from './config/problem.ts'
import { resolveSecret } from './config/secrets.ts'
import type { EvmSettings } from './config/sections/chains.ts'

/** The nodes of an EVM network for its pool. Secrets are resolved at each call: a reload reads files and variables again. */
export const evmNodesOf = (
  { chain, network }: NetworkName,
  { networks }: EvmSettings,
  env: Env,
): PoolOptions['upstreams'] => {
  const key = `chains.${chain}.networks.${network}.upstreams`
  return networks[network]!.upstreams.map((upstream) => ({
    ...(upstream.name !== undefined && { name: upstream.name }),
    url: resolveSecret(upstream.url, { env, key }),
    headers: Object.fromEntries(
      Object.entries(upstream.headers).map(([name, value]) => [
        name,
        resolveSecret(value, { env, key }),
      ]),
    ),
    priority: upstream.priority,
    ...(upstream.archive !== undefined && { archive: upstream.archive }),
    ...(upstream.rate_limit_per_second !== undefined && {
      requests_per_second: upstream.rate_limit_per_second,
    }),
  }))
}
