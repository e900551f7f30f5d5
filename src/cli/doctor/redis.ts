import { resolveSecret } from '../../app/config/secrets.ts'
import { silentLog } from '../../lib/log.ts'
import { connectRedis } from '../../storage/redis.ts'
import type { DoctorContext } from './finding.ts'
import { type Finding, failure, ok } from './finding.ts'

/** Whether Redis answers, where one is configured. */
export async function* checkRedis({ config, shell }: DoctorContext): AsyncGenerator<Finding> {
  if (config.redis.url === undefined) return
  const url = resolveSecret(config.redis.url, { env: shell.env, key: 'redis.url' })
  let reason = 'no answer within 3 s'
  const keep = (fields: object) => {
    if ('err' in fields && fields.err instanceof Error) reason = fields.err.message
  }
  const redis = await connectRedis({
    url,
    log: { ...silentLog, debug: keep, warn: keep },
    command_timeout_ms: 3_000,
    connect_wait_ms: 3_000,
  })
  try {
    if (!redis.ready()) throw new Error(reason)
    const info = String(await redis.command('INFO', 'server'))
    const version = /^(?:valkey|redis)_version:(\S+)/m.exec(info)?.[1]
    yield ok('redis', version === undefined ? 'answers' : `version ${version}`)
  } catch (error) {
    yield failure(
      'redis',
      `Redis does not answer: ${(error as Error).message}.`,
      'Start it, or fix redis.url. Without Redis each process admits its share of the limits.',
    )
  } finally {
    await redis.stop()
  }
}
