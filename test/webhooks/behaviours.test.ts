import { describe, expect, it } from 'vitest'
import { systemIds } from '../../src/lib/ids.ts'
import { freshDatabase } from '../helpers/database.ts'
import { longWinded, reactions, startBadTls, startBehaviour } from './behaviours.ts'
import { createWebhookBench } from './harness.ts'
import { startReceiver } from './receiver.ts'

const database = await freshDatabase()

/** Every pause exactly as long as the standard says. */
const noJitter = { ...systemIds, bytes: () => Buffer.from([0x80, 0, 0, 0]) }
const pauses = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
const schedule = [0, ...pauses.map((_, at) => pauses.slice(0, at + 1).reduce((a, b) => a + b))]
const fiveDays = 5 * 86_400_000

const expected: Record<string, { status_code: number | null; error: string }> = {
  'answers 500': { status_code: 500, error: 'The endpoint answered 500.' },
  'answers 404': { status_code: 404, error: 'The endpoint answered 404.' },
  'answers 429 with Retry-After': { status_code: 429, error: 'The endpoint answered 429.' },
  'redirects with 302': { status_code: 302, error: 'The endpoint answered 302.' },
  'says nothing': { status_code: null, error: 'No answer within 500 ms.' },
  'begins an answer and never ends its head': {
    status_code: null,
    error: 'No answer within 500 ms.',
  },
  'resets the connection': {
    status_code: null,
    error: 'The connection was closed without an answer.',
  },
  'closes at once': { status_code: null, error: 'The connection was closed without an answer.' },
  'answers with bytes that are no HTTP': {
    status_code: null,
    error: 'The answer was not valid HTTP.',
  },
  'has a bad certificate': {
    status_code: null,
    error: 'The certificate or TLS failed (DEPTH_ZERO_SELF_SIGNED_CERT).',
  },
}

describe('a receiver that fails', async () => {
  const names = [...Object.keys(reactions), 'has a bad certificate']
  // One bench for all: they fail beside each other, and none moves the schedule of another.
  const bench = await createWebhookBench(database)
  const behaviours = new Map(
    await Promise.all(
      names.map(async (name) => {
        const react = reactions[name]
        return [name, react ? await startBehaviour(react) : await startBadTls()] as const
      }),
    ),
  )
  const histories = new Map<string, string>()

  it('is tried ten times in four days, and healthy ones beside it once and at once', async () => {
    const healthy = await startReceiver()
    const well = await bench.register(healthy.url)
    for (const [name, { url }] of behaviours)
      histories.set(name, await bench.test(await bench.register(url)))
    const delivered = await bench.test(well)
    // Only those that never answer are given up early: what a loaded machine makes late must not be.
    const hanging = new Set(
      names
        .filter((name) => expected[name]!.error.startsWith('No answer'))
        .map((name) => behaviours.get(name)!.url),
    )
    const courier = bench.startCourier(
      { ids: noJitter },
      { timeoutOf: (url) => (hanging.has(url) ? 500 : undefined) },
    )
    await bench.settled(courier)
    expect(await bench.attempts(delivered)).toMatchObject([{ at: 0, status_code: 204 }])
    await bench.pass(courier, fiveDays)
  })

  it.each(names)('%s', async (name) => {
    const id = histories.get(name)!
    const attempts = await bench.attempts(id)
    const isLater = name.includes('Retry-After')
    const wanted = isLater
      ? // An hour instead of every shorter pause.
        [0, ...pauses.map((pause) => Math.max(pause, 3_600))].map((_, at, all) =>
          all.slice(0, at + 1).reduce((a, b) => a + b),
        )
      : schedule
    expect(attempts).toHaveLength(wanted.length)
    // Beside other files the machine may stand still for a second.
    for (const [index, { at }] of attempts.entries())
      expect(Math.abs(at - wanted[index]!)).toBeLessThan(3)
    for (const attempt of attempts) expect(attempt).toMatchObject(expected[name]!)
    expect(await bench.history(id)).toEqual({
      webhook_status: 'WEBHOOK_STATUS_FAILED',
      delivery_count: 10,
    })
    const reached = name === 'has a bad certificate' ? 0 : 10
    expect(behaviours.get(name)!.requests()).toBe(reached)
  })
})

describe('a receiver that answers in its own way', () => {
  it.each(Object.entries(longWinded))('%s has taken the delivery', async (_name, react) => {
    const bench = await createWebhookBench(database)
    const { url, requests } = await startBehaviour(react)
    const id = await bench.test(await bench.register(url))
    const courier = bench.startCourier({ timeoutMs: 3_000 })
    await bench.settled(courier)
    expect(await bench.history(id)).toEqual({
      webhook_status: 'WEBHOOK_STATUS_COMPLETED',
      delivery_count: 1,
    })
    const [attempt] = await bench.attempts(id)
    expect(attempt!.response_body.length).toBeLessThanOrEqual(16_384)
    expect(attempt!.response_body).toMatch(/^x+$/)
    expect(requests()).toBe(1)
  })

  it('answers 410 is disabled, and nothing more is sent', async () => {
    const bench = await createWebhookBench(database)
    const { url, requests } = await startBehaviour((socket) => {
      socket.write('HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n')
    })
    const webhook_id = await bench.register(url)
    const id = await bench.test(webhook_id)
    const courier = bench.startCourier()
    await bench.settled(courier)
    await bench.pass(courier, fiveDays)
    expect(requests()).toBe(1)
    expect((await bench.history(id)).webhook_status).toBe('WEBHOOK_STATUS_ON_HOLD')
    expect(await bench.caller.reason('SendTestWebhook', { webhook_id })).toBe('WEBHOOK_DISABLED')
  })
})
