import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createClient } from './client.ts'
import { parseJson } from './parse.ts'
import { listen } from './testing/server.ts'

describe('JSON without loss', () => {
  test('an integer that a number cannot hold is a bigint, any other a number', () => {
    expect(parseJson('{"a":9007199254740991,"b":9007199254740992,"c":-9007199254740993}')).toEqual({
      a: 9007199254740991,
      b: 9007199254740992n,
      c: -9007199254740993n,
    })
    expect(parseJson('[12345678901234567890, 1e20, 0.125000000000000000, 1]')).toEqual([
      12345678901234567890n,
      1e20,
      0.125,
      1,
    ])
  })

  test('digits inside of texts and names stay what they are', () => {
    const text = JSON.stringify({
      'a":12345678901234567890': '\\",:12345678901234567890,\\"',
      b: [],
    })
    expect(parseJson(text)).toEqual(JSON.parse(text))
    expect(parseJson(`[${text},18446744073709551615]`)).toEqual([
      JSON.parse(text),
      18446744073709551615n,
    ])
  })

  test('is what a reviver that sees the text makes of it, and refuses what JSON.parse refuses', () => {
    const seen = (_key: string, value: unknown, { source = '' }: { source?: string }) =>
      /^-?\d+$/.test(source) && !Number.isSafeInteger(value) ? BigInt(source) : value
    fc.assert(
      fc.property(fc.json(), fc.bigInt(), (text, big) => {
        const all = `[${text},${big}]`
        expect(parseJson(all)).toEqual(JSON.parse(all, seen as never))
      }),
    )
    for (const bad of [
      '',
      '{',
      '[12345678901234567890',
      '"12345678901234567890',
      '[:12345678901234567]',
    ])
      expect(() => parseJson(bad)).toThrow(SyntaxError)
  })
})

test('the client gives integers of any size as they were sent', async () => {
  const block = '{"block":{"difficulty":13787566370124293333,"gas_limit":30000000}}'
  const { base_url } = await listen((_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(block),
  )
  const client = createClient({ base_url, api_key: 'k', api_secret: 's' })
  const { difficulty, gas_limit } = (await client.q.GetBlock({ block_number: 1 })).block
  expect([difficulty, gas_limit]).toEqual([13787566370124293333n, 30_000_000])
})
