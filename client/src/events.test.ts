import { describe, expect, test } from 'vitest'
import { createClient, importSecret, PortolanError } from './index.ts'
import { listen, problem, reply } from './testing/server.ts'

const clock = { now: () => Date.now(), sleep: async () => {} }
const credentials = { api_key: 'k', api_secret: 's', clock }
const event = (sequence: number) =>
  `id: ${sequence}\nevent: transfer\ndata: ${JSON.stringify({ type: 'transfer', sequence, chain: 'c', data: {} })}\n\n`
const stream = { 'content-type': 'text/event-stream' }

describe('events', () => {
  test('are read across chunks, and resumed after the last one', async () => {
    const { base_url, seen } = await listen((_, response, index) => {
      response.writeHead(200, stream)
      if (index === 0) {
        const text = `retry: 2000\n\n: heartbeat\n\n${event(5)}${event(6)}`
        response.write(text.slice(0, 50))
        setImmediate(() => response.end(text.slice(50)))
      } else response.write(event(6 + index))
    })
    const client = createClient({ base_url, ...credentials })
    const found: (number | string | undefined)[] = []
    const on_interrupt = () => found.push('interrupted')
    for await (const one of client.c.events({ after: 4, types: ['transfer'], on_interrupt })) {
      found.push(one.sequence)
      if (found.length === 4) break
    }
    expect(found).toEqual([5, 6, 'interrupted', 7])
    expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /v1/c/events?after=4&types=transfer',
      'GET /v1/c/events?after=6&types=transfer',
    ])
    expect(seen[0]?.headers['x-api-signature']).toMatch(/^[0-9a-f]{64}$/)
  })

  test('of all chains have one address', async () => {
    const { base_url, seen } = await listen((_, response) => {
      response.writeHead(200, stream)
      response.write(event(1))
    })
    const client = createClient({ base_url: `${base_url}/portolan`, ...credentials })
    for await (const _ of client.events({ chains: ['c', 'base/sepolia'], after: 'c=1' })) break
    expect(seen[0]?.path).toBe('/portolan/v1/events?after=c%3D1&chains=c%2Cbase%2Fsepolia')
  })

  test('wait out what is temporary and throw what is not', async () => {
    const { base_url, seen } = await listen((_, response, index) => {
      if (index === 0) reply(response, 503, problem(503, 'UNAVAILABLE', 'SHUTTING_DOWN'))
      else if (index === 1) response.destroy()
      else if (index === 2)
        reply(response, 429, problem(429, 'RESOURCE_EXHAUSTED', 'TOO_MANY_OPEN'))
      else reply(response, 410, problem(410, 'OUT_OF_RANGE', 'EVENTS_EXPIRED'))
    })
    const client = createClient({ base_url, ...credentials })
    const error = await client.c
      .events({ after: 1 })
      .next()
      .catch((thrown) => thrown)
    expect(error).toBeInstanceOf(PortolanError)
    expect([error.reason, seen.length]).toEqual(['EVENTS_EXPIRED', 4])
  })

  test('end with their signal, quietly', async () => {
    const { base_url } = await listen((_, response) => {
      response.writeHead(200, stream)
      response.write(event(1))
    })
    const client = createClient({ base_url, ...credentials })
    const ending = new AbortController()
    let count = 0
    for await (const _ of client.chain('base').events({ signal: ending.signal })) {
      count++
      setImmediate(() => ending.abort())
    }
    expect(count).toBe(1)
  })
})

test('a key that cannot be read signs like the secret that it was made of', async () => {
  const { base_url, seen } = await listen((_, response) => reply(response, 200, {}))
  const clock = { now: () => 1_800_000_000_000, sleep: async () => {} }
  const key = await importSecret('s')
  expect(key.extractable).toBe(false)
  for (const api_secret of ['s', key])
    await createClient({ base_url, api_key: 'k', api_secret, clock }).admin.ListOrganizations()
  const { createHmac } = await import('node:crypto')
  for (const { headers, path, body } of seen) {
    const mac = createHmac('sha256', 's')
      .update(`${headers['x-api-nonce']}POST${path}`)
      .update(body)
    expect(headers['x-api-signature']).toBe(mac.digest('hex'))
  }
})
