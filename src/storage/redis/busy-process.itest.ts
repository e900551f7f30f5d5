import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../../test/helpers/redis.ts'
import { silentLog } from '../../lib/log.ts'
import { connectRedis } from './redis.ts'

const server = await startRedis()

/** Keeps this thread busy, as loading modules or a large answer does. */
const block = (ms: number): void => {
  const until = performance.now() + ms
  while (performance.now() < until);
}

test.skipIf(!server)('a process that was busy has not lost Redis', async () => {
  const redis = await connectRedis({ url: server!.url, log: silentLog, command_timeout_ms: 250 })
  onTestFinished(async () => {
    await redis.stop()
    await server!.stop()
  })
  const run = redis.script('return tonumber(ARGV[1])', 1)
  for (const ms of [0, 260, 600]) {
    const answer = run(['k'], [ms])
    block(ms)
    expect(await answer).toBe(ms)
  }
  // A server that is silent is noticed, by the limit or by the loss of the connection.
  server!.pause()
  await expect(run(['k'], [1])).rejects.toThrow()
  server!.resume()
})
