import { checkSecrets } from '../config/load.ts'
import { ConfigError, type Env } from '../config/problem.ts'
import { resolveChains } from '../config/resolve.ts'
import type { Config } from '../config/schema.ts'

/** The configuration as it is now, with what its secrets refer to. */
export function rereadConfig({ reread, env }: { reread?(): Config; env: Env }): Config {
  if (!reread)
    throw new ConfigError([{ message: 'This service has no configuration to read again.' }])
  const next = reread()
  const problems = checkSecrets(next, { env })
  if (problems.length > 0) throw new ConfigError(problems)
  return resolveChains(next, env)
}
