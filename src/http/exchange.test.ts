import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readBody } from './exchange.ts'

const request = (headers: Record<string, string> = {}) =>
  Object.assign(new PassThrough(), { headers }) as unknown as PassThrough & IncomingMessage

const read = async (parts: Uint8Array[], limit: number) => {
  const message = request()
  const body = readBody(message, limit)
  for (const part of parts) message.write(part)
  message.end()
  return await body
}

describe('a body', () => {
  it('is read as it was sent, however it was cut into pieces', async () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(pieces, async (parts) => {
        expect(Buffer.concat(parts).equals(await read(parts, 1_000))).toBe(true)
      }),
      { numRuns: 50 },
    )
  })

  it('of exactly the limit is read and of one byte more is refused', async () => {
    const half = randomBytes(512)
    expect(await read([half, half], 1_024)).toHaveLength(1_024)
    await expect(read([half, half, Buffer.of(1)], 1_024)).rejects.toMatchObject({
      reason: 'BODY_TOO_LARGE',
      headers: { connection: 'close' },
    })
  })

  it('is refused by its announced length before a byte of it is read', async () => {
    const message = request({ 'content-length': '1025' })
    await expect(readBody(message, 1_024)).rejects.toMatchObject({ reason: 'BODY_TOO_LARGE' })
    expect(message.listenerCount('data')).toBe(0)
  })

  it('that breaks off fails', async () => {
    const message = request()
    const body = readBody(message, 1_024)
    message.write('half')
    message.destroy(new Error('broken'))
    await expect(body).rejects.toThrow('broken')
  })
})
