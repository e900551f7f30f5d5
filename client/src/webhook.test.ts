import { createHmac, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifyWebhook } from './webhook.ts'
import type { WebhookError } from './webhook-error.ts'

const key = randomBytes(32)
const secret = `whsec_${key.toString('base64')}`
const time = 1_800_000_000
const now = () => time * 1000

const sign = (body: string | Uint8Array, id = 'msg_1', timestamp = time, signingKey = key) =>
  `v1,${createHmac('sha256', signingKey).update(`${id}.${timestamp}.`).update(body).digest('base64')}`

const delivery = (body: string | Uint8Array, signature = sign(body)) => ({
  secret,
  now,
  body,
  headers: {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(time),
    'webhook-signature': signature,
  },
})

const reasonOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'accepted',
    (error: WebhookError) => error.reason,
  )

describe('accepts', () => {
  test('what was signed, and returns the parsed body', async () => {
    expect(await verifyWebhook(delivery('{"webhook_id":"w"}'))).toEqual({ webhook_id: 'w' })
  })

  test('the example of the Standard Webhooks specification', async () => {
    const body = '{"test": 2432232314}'
    const verified = await verifyWebhook({
      secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      headers: {
        'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        'webhook-timestamp': '1614265330',
        'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      },
      body,
      now: () => 1_614_265_330_000,
    })
    expect(verified).toEqual({ test: 2432232314 })
  })

  test('any body, as text or bytes', () =>
    fc.assert(
      fc.asyncProperty(fc.json(), async (body) => {
        expect(await verifyWebhook(delivery(body))).toEqual(JSON.parse(body))
        const bytes = new TextEncoder().encode(body)
        expect(await verifyWebhook(delivery(bytes))).toEqual(JSON.parse(body))
      }),
      { numRuns: 50 },
    ))

  test('headers of fetch, of node:http, and in any case', async () => {
    const { headers, ...rest } = delivery('{}')
    expect(await verifyWebhook({ ...rest, headers: new Headers(headers) })).toEqual({})
    const upper = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]),
    )
    expect(await verifyWebhook({ ...rest, headers: upper })).toEqual({})
  })

  test('one good signature among others, as while a secret is rotated', async () => {
    const old = sign('{}', 'msg_1', time, randomBytes(32))
    const list = `${old} v1a,AAAA v1,!!! ${sign('{}')} nonsense`
    expect(await verifyWebhook(delivery('{}', list))).toEqual({})
  })

  test('one of several secrets, with or without the prefix', async () => {
    const other = randomBytes(24).toString('base64')
    const secrets = [other, key.toString('base64')]
    expect(await verifyWebhook({ ...delivery('{}'), secret: secrets })).toEqual({})
  })

  test('a delivery just inside the tolerance', async () => {
    const late = { ...delivery('{}'), now: () => (time + 300) * 1000 }
    expect(await verifyWebhook(late)).toEqual({})
  })
})

describe('refuses', () => {
  test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
    'without %s',
    async (name) => {
      const { headers, ...rest } = delivery('{}')
      const call = verifyWebhook({ ...rest, headers: { ...headers, [name]: undefined } })
      expect(await reasonOf(call)).toBe('MISSING_HEADER')
    },
  )

  test.each([
    ['a changed body', delivery('{"a":1}', sign('{"a":2}'))],
    ['a changed id', delivery('{}', sign('{}', 'msg_2'))],
    ['a changed time', delivery('{}', sign('{}', 'msg_1', time - 1))],
    ['another secret', delivery('{}', sign('{}', 'msg_1', time, randomBytes(32)))],
    ['another version', delivery('{}', sign('{}').replace('v1,', 'v2,'))],
    ['a cut signature', delivery('{}', sign('{}').slice(0, -8))],
    ['no usable signature', delivery('{}', 'v1')],
  ])('%s', async (_, changed) => {
    expect(await reasonOf(verifyWebhook(changed))).toBe('SIGNATURE_MISMATCH')
  })

  test.each([
    ['TOO_OLD', String(time - 301)],
    ['TOO_NEW', String(time + 301)],
    ['INVALID_TIMESTAMP', 'today'],
    ['INVALID_TIMESTAMP', '-1'],
    ['INVALID_TIMESTAMP', '1e9'],
  ])('%s: %s', async (reason, timestamp) => {
    const { headers, ...rest } = delivery('{}', sign('{}', 'msg_1', Number(timestamp)))
    const call = verifyWebhook({ ...rest, headers: { ...headers, 'webhook-timestamp': timestamp } })
    expect(await reasonOf(call)).toBe(reason)
  })

  test('an old delivery by the given tolerance', async () => {
    const late = { ...delivery('{}'), now: () => (time + 11) * 1000, tolerance_seconds: 10 }
    expect(await reasonOf(verifyWebhook(late))).toBe('TOO_OLD')
  })

  test.each(['', 'whsec_', 'whsec_***'])('the secret %j', async (bad) => {
    expect(await reasonOf(verifyWebhook({ ...delivery('{}'), secret: bad }))).toBe('INVALID_SECRET')
  })

  test.each(['', '{', Uint8Array.of(0xff)])('a signed body that is not JSON: %j', async (body) => {
    expect(await reasonOf(verifyWebhook(delivery(body)))).toBe('INVALID_BODY')
  })
})
