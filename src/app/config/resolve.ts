import { withLiteServers } from './lite-servers.ts'
import { mapLeaves, nodeOfConfig } from './node.ts'
import { type Env, pathText } from './problem.ts'
import type { Config } from './schema.ts'
import { resolveSecret } from './secrets.ts'

/**
 * The configuration with the secrets of its chains in place of their references, and lite servers as nodes. What a
 * referenced file holds may change while the configuration stays the same: nodes are compared by what they are opened with.
 */
export const resolveChains = (config: Config, env: Env): Config => {
  const resolved = mapLeaves(nodeOfConfig(config), config, ({ path, node, value }) =>
    path[0] === 'chains' && node.secret && typeof value === 'string'
      ? resolveSecret(value, { env, key: pathText(path) })
      : value,
  ) as Pick<Config, 'chains'>
  return { ...config, chains: withLiteServers(resolved.chains ?? {}) }
}
