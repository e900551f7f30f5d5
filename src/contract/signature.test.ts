import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { authHeaders, nonceTime, signedPrefix } from './signature.ts'

test('the credentials are the headers of the specification', () => {
  expect(Object.values(authHeaders)).toEqual(['x-api-key', 'x-api-nonce', 'x-api-signature'])
})

test('the signed text is nonce, upper-case method, path and raw body', () => {
  const prefix = signedPrefix('1800000000000000', 'post', '/v1/c/RegisterWallet?x=1')
  expect(prefix).toBe('1800000000000000POST/v1/c/RegisterWallet?x=1')
  // The vector of the documentation, for those who write their own client.
  expect(
    createHmac('sha256', 'secret').update(prefix).update('{"name":"treasury"}').digest('hex'),
  ).toMatchInlineSnapshot(`"1efa13a9514d711291372d1516bd7a5dc44afe7075d17b5cdc64ab2d94c79100"`)
})

describe('the time of a nonce', () => {
  test.each([
    ['1800000000123', 1_800_000_000_123],
    ['1800000000123456', 1_800_000_000_123],
    ['1800000000123456789', 1_800_000_000_123],
    ['0000000000000', 0],
  ])('%s', (nonce, time) => expect(nonceTime(nonce)).toBe(time))

  test.each([
    '',
    '1800000000',
    '18000000001234',
    '180000000012345678',
    '18000000001234567890',
    '-180000000012',
    '+180000000012',
    '1800000000.12',
    '1.8e12       ',
    ' 1800000000123',
    '1800000000123\n',
    '٠٠٠٠٠٠٠٠٠٠٠٠٠',
    '0x18000000001',
  ])('%j is none', (nonce) => expect(nonceTime(nonce)).toBeUndefined())
})
