import { describe, expect, test } from 'vitest'
import { createClient } from './client.ts'
import { PortolanError } from './error.ts'
import { isRepeatable, retryDelay } from './retry.ts'
import { expectedSignature, listen, problem, reply } from './testing/server.ts'

const credential = { api_key: 'key-1', api_secret: 'secret' }

/** A clock that is stopped and notes how long it was asked to wait. */
const stillClock = (time = 1_800_000_000_000) => {
  const waits: number[] = []
  const sleep = async (ms: number) => {
    waits.push(Math.floor(ms / 1000))
  }
  return { now: () => time, sleep, waits }
}

/** Refuses the first `times` requests, then answers. */
const refusing = (times: number, status: number, retryAfter?: string) =>
  listen((_, response, index) =>
    index < times
      ? reply(
          response,
          status,
          problem(status, 'X', 'REFUSED'),
          retryAfter === undefined ? {} : { 'retry-after': retryAfter },
        )
      : reply(response, 200, { wallet_id: 'w' }),
  )

describe('after 429', () => {
  test('waits as long as Retry-After says, and signs again', async () => {
    const { base_url, seen } = await refusing(2, 429, '7')
    const clock = stillClock()
    const client = createClient({ base_url, ...credential, clock })
    expect(await client.c.RegisterWallet({ name: 'n' })).toEqual({ wallet_id: 'w' })
    expect(clock.waits).toEqual([7, 7])
    expect(new Set(seen.map(({ headers }) => headers['x-api-nonce'])).size).toBe(3)
    expect(seen.map(({ headers }) => headers['x-api-signature'])).toEqual(
      seen.map((request) => expectedSignature(request, 'secret')),
    )
  })

  test('gives up after the given number of retries', async () => {
    const { base_url, seen } = await refusing(9, 429, '1')
    const client = createClient({ base_url, ...credential, clock: stillClock(), retries: 1 })
    await expect(client.c.ListWallets()).rejects.toThrow(PortolanError)
    expect(seen.length).toBe(2)
  })

  test('leaves a long wait to the caller', async () => {
    const { base_url, seen } = await refusing(9, 429, '3600')
    const client = createClient({ base_url, ...credential, clock: stillClock() })
    await expect(client.c.ListWallets()).rejects.toMatchObject({ retry_after: 3600 })
    expect(seen.length).toBe(1)
  })

  test('waits no longer when the call is aborted', async () => {
    const { base_url } = await refusing(9, 429, '20')
    const controller = new AbortController()
    setTimeout(() => controller.abort('enough'), 50)
    const client = createClient({ base_url, ...credential })
    const call = client.c.ListWallets({}, { signal: controller.signal })
    await expect(call).rejects.toBe('enough')
  })
})

describe('after 503', () => {
  test('repeats idempotent calls', async () => {
    const { base_url, seen } = await refusing(1, 503, '1')
    await createClient({ base_url, ...credential, clock: stillClock() }).c.ListWallets()
    expect(seen.length).toBe(2)
  })

  test('does not repeat calls that must not be repeated', async () => {
    const { base_url, seen } = await refusing(1, 503, '1')
    const client = createClient({ base_url, ...credential, clock: stillClock() })
    await expect(client.c.RegisterWallet({ name: 'n' })).rejects.toMatchObject({ status: 503 })
    expect(seen.length).toBe(1)
  })
})

test.each([500, 502, 504])('never repeats after %i', async (status) => {
  const { base_url, seen } = await refusing(1, status, '1')
  const client = createClient({ base_url, ...credential, clock: stillClock() })
  await expect(client.c.ListWallets()).rejects.toMatchObject({ status })
  expect(seen.length).toBe(1)
})

test('waits longer each time where Retry-After is missing', () => {
  const error = new PortolanError({ status: 503, code: 'X', reason: 'X', detail: '' })
  const waits = [0, 1, 2].map((attempt) => retryDelay(error, 'GetWallet', attempt, () => 0.5))
  expect(waits).toEqual([375, 750, 1500])
})

test.each([
  ['GetWallet', true],
  ['ListTransfers', true],
  ['UpdateConfirmation', true],
  ['SendTransaction', true],
  ['RegisterAddress', true],
  ['BatchRegisterAddresses', true],
  ['SendTestWebhook', false],
  ['RegisterWallet', false],
  ['RegisterWebhook', false],
  ['CreateTransaction', false],
  ['RemoveAddress', false],
  ['RotateWebhookSigningSecret', false],
  ['RetryWebhookHistory', false],
])('%s may be repeated: %s', (operation, expected) => {
  expect(isRepeatable(operation)).toBe(expected)
})

describe('a clock that is wrong', () => {
  const serverTime = 1_800_000_000_000
  const skewed = (hours: number, extra: object, headers = {}) =>
    listen((seen, response) => {
      const time = Number(String(seen.headers['x-api-nonce']).slice(0, 13))
      if (Math.abs(time - serverTime) < 300_000) return reply(response, 200, { hours })
      reply(response, 401, problem(401, 'UNAUTHENTICATED', 'CLOCK_SKEW', extra), headers)
    })

  test.each([
    ['a text of milliseconds', { server_time: String(serverTime) }, {}],
    ['a number', { server_time: serverTime }, {}],
    ['a timestamp', { server_time: new Date(serverTime).toISOString() }, {}],
    ['the Date header', {}, { date: new Date(serverTime).toUTCString() }],
  ])('follows the server: %s', async (_, extra, headers) => {
    const { base_url, seen } = await skewed(-2, extra, headers)
    const clock = stillClock(serverTime - 7_200_000)
    const client = createClient({ base_url, ...credential, clock })
    await client.c.ListWallets()
    await client.c.ListWallets()
    expect(seen.length).toBe(3)
    expect(clock.waits).toEqual([])
  })

  test('follows once for calls in parallel, also backwards', async () => {
    const { base_url, seen } = await skewed(2, { server_time: String(serverTime) })
    const client = createClient({
      base_url,
      ...credential,
      clock: stillClock(serverTime + 7_200_000),
    })
    await Promise.all(Array.from({ length: 20 }, () => client.c.ListWallets()))
    expect(seen.length).toBe(40)
    expect(new Set(seen.map(({ headers }) => headers['x-api-nonce'])).size).toBe(40)
  })

  test('tries once only', async () => {
    const { base_url, seen } = await listen((_, response) =>
      reply(response, 401, problem(401, 'UNAUTHENTICATED', 'CLOCK_SKEW', { server_time: '1' })),
    )
    const client = createClient({ base_url, ...credential })
    await expect(client.c.ListWallets()).rejects.toMatchObject({ reason: 'CLOCK_SKEW' })
    expect(seen.length).toBe(2)
  })
})

test('a call with an idempotency key is repeated after 503, with the same key', async () => {
  const { base_url, seen } = await refusing(1, 503, '1')
  const client = createClient({ base_url, ...credential, clock: stillClock() })
  await client.c.RegisterWallet({ name: 'n' }, { idempotency_key: 'key-7' })
  expect(seen.map(({ headers }) => headers['idempotency-key'])).toEqual(['key-7', 'key-7'])
})
