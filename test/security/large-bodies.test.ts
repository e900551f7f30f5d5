import { Pool } from 'undici'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { startTestGateway } from '../gateway/gateway.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { sendOn } from '../helpers/app.ts'

const node = await startStubNode()
const gateway = await startTestGateway([node.url])
const single = '{"jsonrpc":"2.0","id":1,"method":"net_version"}'
const call = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"eth_call","params":${params}}`
const bytes = 5_000_000
const hostile: [string, string][] = [
  ['nested arrays', call('['.repeat(bytes / 2) + ']'.repeat(bytes / 2))],
  ['empty arrays', call(`[${'[],'.repeat(bytes / 3)}[]]`)],
  ['nested objects', call(`[${'{"a":'.repeat(bytes / 6)}1${'}'.repeat(bytes / 6)}]`)],
  ['a batch of arrays', `[${'[],'.repeat(bytes / 3)}[]]`],
]

const limitedTo = async (per_second_limit: number, chain = 'c') => {
  const tenant = await gateway.createTenant()
  const { status } = await gateway.call(gateway.tenant.admin, 'admin/SetRateLimit', {
    organization_id: tenant.organization_id,
    chain,
    ...{ per_second_limit, per_hour_limit: -1, per_day_limit: -1, per_month_limit: -1 },
  })
  expect(status).toBe(200)
  return tenant.member
}

let clients = 1

/** Sends a body from an address of its own: of one client the service reads a refused body at 1 MiB a second. */
async function postAsNewClient(body: string, key: string) {
  const localAddress = `127.0.1.${clients++}`
  const pool = new Pool(new URL(gateway.base_url).origin, { connect: { localAddress } })
  const headers = { 'content-type': 'application/json' }
  try {
    return await sendOn(pool, `/c/mainnet/v1/${key}`, { body, headers })
  } finally {
    await pool.close()
  }
}

/**
 * How long the thread of the service, which is this one, was delayed at most by one piece of work. The least of
 * three attempts: a busy machine delays one of them, a body that is parsed delays all.
 */
async function longestHold(during: () => Promise<void>): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 3 && least >= bearableMs; attempt++)
    least = Math.min(least, await holdOf(during))
  return least
}

async function holdOf(during: () => Promise<void>): Promise<number> {
  let longest = 0
  let last = performance.now()
  let isOver = false
  const look = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) setImmediate(look)
  }
  look()
  await during()
  isOver = true
  return longest
}

// Parsed, each of these bodies takes from half a second to two seconds. What is left is to receive them.
const bearableMs = 250

describe('others do not wait for a body that takes long to parse', () => {
  it('of a blocked key: nested arrays, empty arrays, nested objects and a batch of arrays', async () => {
    const { api_key } = await limitedTo(0)
    await gateway.post(single, { key: api_key })
    const longest = await longestHold(async () => {
      // At once: the service reads each of them for five seconds.
      const refused = hostile.map(([, body]) => postAsNewClient(body, api_key))
      for (const { status, json } of await Promise.all(refused)) {
        expect(status).toBe(403)
        expect(json.error.data.reason).toBe('RATE_LIMIT_BLOCKED')
      }
      expect((await gateway.post(single)).status).toBe(200)
    })
    expect(longest).toBeLessThan(bearableMs)
  })

  it.each(hostile)('of a key within its limits: %s', async (_, body) => {
    const { api_key } = await limitedTo(1_000)
    const longest = await longestHold(async () => {
      const { status } = await gateway.post(body, { key: api_key })
      expect([400, 413]).toContain(status)
    })
    expect(longest).toBeLessThan(bearableMs)
  })

  it('that is refused by its length alone, and answered with its id all the same', async () => {
    const { api_key } = await limitedTo(0)
    const filler = 'a'.repeat(100_000)
    const member = '"jsonrpc":"2.0","method":"eth_call"'
    const bodies = [
      [`{"id":"first",${member},"params":["${filler}"]}`, 'first'],
      [`{${member},"params":["${filler}"],"id":9}`, 9],
      [`{"id":"é",${member},"params":["${filler}"]}`, null],
      [`[{"id":1,${member},"params":["${filler}"]}]`, null],
    ] as const
    for (const [body, id] of bodies) {
      const { status, json } = await gateway.post(body, { key: api_key })
      expect([status, json.id, json.error.data.reason]).toEqual([403, id, 'RATE_LIMIT_BLOCKED'])
    }
  })

  it('over a WebSocket', async () => {
    const { api_key } = await limitedTo(0)
    const socket = new WebSocket(
      `${gateway.base_url.replace('http', 'ws')}/c/mainnet/v1/ws/${api_key}`,
    )
    await new Promise((resolve) => socket.once('open', resolve))
    const longest = await longestHold(async () => {
      for (const [, body] of hostile) {
        const answer = new Promise<string>((resolve) =>
          socket.once('message', (data) => resolve(String(data))),
        )
        socket.send(body)
        expect(JSON.parse(await answer).error.data.reason).toBe('RATE_LIMIT_BLOCKED')
      }
    })
    socket.terminate()
    expect(longest).toBeLessThan(bearableMs)
  })

  it('of an operation', async () => {
    const blocked = await limitedTo(0, 'admin')
    const free = await limitedTo(1_000, 'admin')
    const list = Array(300_000).fill([])
    const deep = JSON.parse('['.repeat(5_000) + ']'.repeat(5_000))
    const longest = await longestHold(async () => {
      const refused = await gateway.call(blocked, 'admin/GetUsage', { list })
      expect(refused.json.reason).toBe('RATE_LIMIT_BLOCKED')
      const tooMany = await gateway.call(free, 'admin/GetUsage', { list })
      expect([tooMany.status, tooMany.json.reason]).toEqual([413, 'BODY_TOO_LARGE'])
      const tooDeep = await gateway.call(free, 'admin/GetUsage', { deep })
      expect([tooDeep.status, tooDeep.json.reason]).toEqual([400, 'INVALID_JSON'])
    })
    expect(longest).toBeLessThan(bearableMs)
  })

  it('and a large body of an operation counts as several calls', async () => {
    const pair = await limitedTo(50, 'admin')
    const { headers } = await gateway.call(pair, 'admin/GetUsage', { note: 'a'.repeat(100_000) })
    expect(headers.ratelimit).toMatch(/^"second";r=43;/)
  })
})
