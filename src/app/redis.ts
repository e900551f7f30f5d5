import type { LimitScript } from '../domain/limits/shared-windows.ts'
import type { Log } from '../lib/log.ts'
import type { Env } from './config/env-source.ts'
import type { Config } from './config/schema.ts'

/** What the service shares through Redis. */
export type SharedRedis = { limitScript: LimitScript; stop(): Promise<void> }

/** Connects to Redis where one is configured. */
export async function openRedis(
  config: Config,
  _options: { env: Env; log: Log },
): Promise<SharedRedis | undefined> {
  if (config.redis.url === undefined) return undefined
  throw new Error('not wired yet')
}
