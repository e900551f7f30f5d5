import { createLimitScript } from '../domain/limits/limit-script.ts'
import type { LimitScript } from '../domain/limits/shared-windows.ts'
import type { Log } from '../lib/log.ts'
import { connectRedis } from '../storage/redis.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { resolveSecret } from './config/secrets.ts'

/** What the service shares through Redis. */
export type SharedRedis = { limitScript: LimitScript; stop(): Promise<void> }

/** Connects to Redis where one is configured. */
export async function openRedis(
  config: Config,
  { env, log }: { env: Env; log: Log },
): Promise<SharedRedis | undefined> {
  const { url, key_prefix } = config.redis
  if (url === undefined) return undefined
  const redis = await connectRedis({
    url: resolveSecret(url, { env, key: 'redis.url' }),
    key_prefix,
    log,
  })
  return { limitScript: createLimitScript(redis), stop: redis.stop }
}
