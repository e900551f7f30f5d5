import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { connectRedis } from '../../../storage/redis/redis.ts'
import { createLimiter } from '../limiter.ts'
import { createLimitScript } from '../shared-windows.ts'

/**
 * A process of its own for the tests: makes calls on a shared Redis and prints how many were
 * admitted. Arguments: url, month limit, calls, milliseconds its clock is wrong.
 */
const [url, limit, calls, skew] = process.argv.slice(2)
const redis = await connectRedis({ url: url!, log: silentLog, command_timeout_ms: 10_000 })
const limiter = createLimiter({
  clock: { ...systemClock, now: () => Date.now() + Number(skew) },
  log: silentLog,
  redis: createLimitScript(redis),
  replicas: 2,
})
const limits = {
  per_second_limit: -1,
  per_hour_limit: -1,
  per_day_limit: -1,
  per_month_limit: Number(limit),
}
let admitted = 0
let left = Number(calls)
const caller = async (): Promise<void> => {
  while (left > 0) {
    left -= 1
    const decision = await limiter.take({ organization_id: 'o', chain: 'c', limits })
    if (decision.allowed) admitted += 1
  }
}
await Promise.all(Array.from({ length: 50 }, caller))
const { mode } = limiter.status()
await limiter.stop()
await redis.stop()
process.stdout.write(JSON.stringify({ admitted, mode }))
