import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { captureLog } from '../../../test/helpers/log-capture.ts'
import { connectRedis } from './redis.ts'

it('a server that refuses the password does not bring it into the log', async () => {
  const server = createServer((socket) => {
    // One answer per command, as Redis gives: a chunk may hold several.
    socket.on('data', (chunk) => {
      for (const _ of String(chunk).matchAll(/^\*\d/gm))
        socket.write('-WRONGPASS invalid username-password pair\r\n')
    })
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const log = await captureLog()
  const redis = await connectRedis({
    url: `redis://user:very-secret-word@127.0.0.1:${port}`,
    log: log.log,
    connect_wait_ms: 300,
  })
  await expect.poll(() => log.text()).toContain('WRONGPASS')
  await redis.stop()
  server.close()
  expect(log.text()).not.toContain('very-secret-word')
})
