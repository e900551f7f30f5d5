import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { freePort } from './free-port.ts'

it('ports for programs are none that the system gives to others, and never the same', async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, freePort))
  expect(new Set(ports).size).toBe(200)
  // IANA and Linux: 32768 is the lowest port that a system takes by itself.
  expect(Math.max(...ports)).toBeLessThan(32_768)
  const server = createServer().listen(ports[0], '127.0.0.1')
  await new Promise((resolve, reject) =>
    server.once('listening', () => resolve(true)).once('error', reject),
  )
  server.close()
})
