import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { createAdmission } from '../domain/access/admit.ts'
import { principalFrom } from '../domain/access/principal.ts'
import { createLimiter } from '../domain/limits/limiter.ts'
import type { Network } from '../gateway/network.ts'
import { type Answer, answered } from '../gateway/rpc/answer.ts'
import { createEnvelopeReader } from '../gateway/rpc/envelope.ts'
import { createServe } from '../gateway/rpc/serve.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import { silentLog } from '../lib/log.ts'
import { createClientAddress } from './clients/client-address.ts'
import { createShares } from './clients/shares.ts'
import { createGatewayFront } from './fast-path/gateway-front.ts'
import { createGatewayHandler } from './gateway.ts'
import { startServer } from './server.ts'

const perHour = 10_000
const limits = {
  ...{ per_second_limit: -1, per_hour_limit: perHour, per_day_limit: -1, per_month_limit: -1 },
}
const admission = createAdmission(
  { limitsOf: () => limits, forget: () => {}, setDefaults: () => {} },
  createLimiter({ clock: systemClock, log: silentLog }),
)
const principal = principalFrom({
  ...{ credential_id: 'c', organization_id: 'o', role: 'ROLE_MEMBER' as const },
  ...{ expire_time: null, scopes: null, allowed_client_networks: null },
})
/** What the usage has of each call. */
const counted: string[] = []
const network = {
  ...{ chain: 'c', network: 'm' },
  sessionOf: () => ({ principal }),
  call: (_call: unknown, _session: unknown, done: (answer: Answer) => void) => {
    counted.push('answered')
    done(answered('"0x1"'))
  },
  countRefused: (_call: unknown, _session: unknown, { refusal }: Answer, isOverLimit: boolean) => {
    counted.push(`${refusal?.reason}${isOverLimit ? ' over a limit' : ''}`)
  },
} as unknown as Network
const front = createGatewayFront({
  networks: new Map([['/c/m', network]]),
  keys: { principalOf: () => principal } as never,
  serve: createServe({
    read: createEnvelopeReader({ batchLimit: 1_000 }),
    ...{ admission, maxBatchBytes: 1_000_000 },
  }),
  admission,
  bodyLimitBytes: 1_000_000,
  clock: systemClock,
  ids: systemIds,
  log: silentLog,
  access: { isSampled: () => false, follow: (_call, done) => done },
})
const clientOf = createClientAddress(0)
const server = await startServer({
  ...{ host: '127.0.0.1', port: 0, routes: [], log: silentLog, ids: systemIds, clientOf },
  direct: createGatewayHandler(front, clientOf, createShares({ perClient: 50_000, all: 100_000 })),
  onFinished() {},
})
afterAll(server.stop)

const used = async () => {
  const decision = await admission.admit('o', 'c', 0)
  return perHour - (decision.windows[0]?.remaining ?? 0)
}
/** Sends a body and, unless it is cut off, reads the status of the answer. */
const send = async (body: Buffer, length = body.length): Promise<number> => {
  const before = await used()
  const socket = connect(server.address.port, '127.0.0.1')
  socket.on('error', () => {})
  const lines = ['POST /c/m/v1/k HTTP/1.1', 'host: a', 'content-type: application/json']
  socket.write(`${lines.join('\r\n')}\r\ncontent-length: ${length}\r\n\r\n`)
  socket.write(body)
  if (length > body.length) {
    // The limits have counted its length.
    await expect.poll(used).toBeGreaterThan(before)
    socket.destroy()
    return 0
  }
  const [head] = await once(socket, 'data')
  socket.destroy()
  return Number(String(head).split(' ')[1])
}
const call = (text: string) =>
  Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"evm_call","params":["${text}"]}`, 'latin1')

it.each<[string, { body: Buffer; length?: number; status: number; usage: string[]; cost: number }]>(
  [
    ['small', { body: call('a'), status: 200, usage: ['answered'], cost: 1 }],
    ['large', { body: call('a'.repeat(40_000)), status: 200, usage: ['answered'], cost: 3 }],
    ['small, of no text', { body: call('\xff'), status: 400, usage: [], cost: 0 }],
    [
      'large, of no text',
      { body: call('\xff'.repeat(40_000)), status: 400, usage: ['INVALID_JSON'], cost: 3 },
    ],
    [
      'large, without room',
      { body: call('a'.repeat(90_000)), status: 429, usage: ['TOO_MUCH_IN_FLIGHT'], cost: 6 },
    ],
    [
      'large, and broken off',
      {
        ...{ body: Buffer.from('{'), length: 40_000, status: 0 },
        ...{ usage: ['MALFORMED_REQUEST'], cost: 3 },
      },
    ],
  ],
)('the usage has a body that the limits have counted: %s', async (_, expected) => {
  const { body, length, status, usage, cost } = expected
  counted.length = 0
  const before = await used()
  expect(await send(body, length)).toBe(status)
  await expect.poll(() => counted, { timeout: 5_000 }).toEqual(usage)
  expect((await used()) - before).toBe(cost)
})
