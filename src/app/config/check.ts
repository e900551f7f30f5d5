import { leafFault } from './complete.ts'
import type { Env } from './env-source.ts'
import { leavesOf } from './leaves.ts'
import { type LoadOptions, loadConfig } from './load.ts'
import { rootNode } from './node.ts'
import { ConfigError, type Problem } from './problem.ts'
import { isReference } from './reference.ts'
import type { Config } from './schema.ts'
import { resolveSecret } from './secrets.ts'
import { pathText, shownWord } from './text.ts'

/** Everything that is wrong with a configuration, its secret references included; empty when it is fine. */
export const checkConfig = (options: LoadOptions): Problem[] => {
  try {
    return checkSecrets(loadConfig(options), { env: options.env })
  } catch (error) {
    if (error instanceof ConfigError) return [...error.problems]
    throw error
  }
}

/** References of a loaded configuration that lead nowhere, or to something that does not fit the key. */
export const checkSecrets = (
  config: Config,
  options: { env: Env; warn?: (message: string) => void },
): Problem[] =>
  leavesOf(rootNode, config).flatMap(({ path, node, value }): Problem[] => {
    if (!node.secret || typeof value !== 'string' || !isReference(value)) return []
    const key = pathText(path)
    try {
      const secret = resolveSecret(value, { ...options, key })
      const must = isReference(secret) ? 'be the secret itself' : leafFault(node, secret)
      if (must === undefined) return []
      return [
        { message: `\`${key}\` is ${shownWord(value)}, and what is there must ${must}.`, key },
      ]
    } catch (error) {
      if (error instanceof ConfigError) return [...error.problems]
      throw error
    }
  })
