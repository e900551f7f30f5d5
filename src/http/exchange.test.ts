import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readBody } from './exchange.ts'

const request = (headers: Record<string, string> = {}) =>
  Object.assign(new PassThrough(), {
    ...{ headers, httpVersion: '1.1', socket: new Socket() },
  }) as unknown as PassThrough & IncomingMessage

const exchangeOf = (message: IncomingMessage) => {
  const continued: string[] = []
  const response = { writeContinue: () => continued.push('100') } as unknown as ServerResponse
  return { request: message, response, continued }
}

const read = async (parts: Uint8Array[], limit: number) => {
  const message = request()
  const body = readBody(exchangeOf(message), limit)
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
      headers: {},
    })
  })

  it.each([{ 'content-length': '1000000' }, {}])(
    'that is too large is read to its end before it is refused: %j',
    async (headers) => {
      const message = request(headers)
      const body = readBody(exchangeOf(message), 1_024)
      let isRefused = false
      const refused = body.catch((error) => {
        isRefused = true
        return error
      })
      for (let part = 0; part < 9; part++) message.write(randomBytes(100_000))
      await new Promise(setImmediate)
      expect(isRefused).toBe(false)
      message.end(randomBytes(100_000))
      expect(await refused).toMatchObject({ reason: 'BODY_TOO_LARGE', headers: {} })
    },
  )

  it('that does not end is refused after a bounded number of bytes, and the connection closed', async () => {
    const message = request()
    let isRefused = false
    const body = readBody(exchangeOf(message), 1_024).catch((error) => {
      isRefused = true
      return error
    })
    const piece = randomBytes(1_000_000)
    for (let part = 0; part < 40 && !isRefused; part++) {
      message.write(piece)
      await new Promise(setImmediate)
    }
    expect(await body).toMatchObject({
      reason: 'BODY_TOO_LARGE',
      headers: { connection: 'close' },
    })
  })

  it('is asked for only where it is wanted', async () => {
    const expect100 = { expect: '100-continue' }
    const large = exchangeOf(request({ ...expect100, 'content-length': '1025' }))
    await expect(readBody(large, 1_024)).rejects.toMatchObject({
      reason: 'BODY_TOO_LARGE',
      headers: { connection: 'close' },
    })
    expect(large.continued).toEqual([])
    const message = request({ ...expect100, 'content-length': '2' })
    const small = exchangeOf(message)
    const body = readBody(small, 1_024)
    expect(small.continued).toEqual(['100'])
    message.end('{}')
    expect(String(await body)).toBe('{}')
  })

  it('that breaks off fails', async () => {
    const message = request()
    const body = readBody(exchangeOf(message), 1_024)
    message.write('half')
    message.destroy(new Error('broken'))
    await expect(body).rejects.toThrow('broken')
  })
})
