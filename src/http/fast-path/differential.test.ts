import { connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { OperationError } from '../../contract/errors/errors.ts'
import { principalFrom } from '../../domain/access/principal.ts'
import type { Installation } from '../../domain/context.ts'
import type { Network } from '../../gateway/network.ts'
import { refused } from '../../gateway/rpc/answer.ts'
import { refuse } from '../../gateway/rpc/rpc-error.ts'
import type { Serve } from '../../gateway/rpc/serve.ts'
import { alone } from '../../gateway/rpc/served.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { createClientAddress } from '../clients/client-address.ts'
import { createGatewayHandler } from '../gateway.ts'
import { createOperations } from '../operations.ts'
import { createRoutes } from '../routes.ts'
import { startServer } from '../server.ts'
import { createGatewayFront, type GatewayFront } from './gateway-front.ts'
import { createOperationsFront } from './operations-front.ts'

// The same bytes to Node's server alone and to Node's server behind the fast path. Every byte of both answers
// must be equal: statuses, header names, values and order, bodies, and what follows the last answer. Where two
// readers of HTTP disagree, requests can be smuggled. Only two things are injected or checked apart: request
// ids come from a counter, and a date must be that of the moment.
const serve: Serve = (_network, _principal, body, done) => {
  const served = { ...alone(refused(refuse('INVALID_JSON'))), status: 200, body: `<${body}>` }
  if (body.length % 2) done(served)
  else setImmediate(done, served)
}
const routes = createRoutes({})

/** Answers with everything that a signature covers, at once or in a later turn. */
const operations = createOperations({
  installation: {} as Installation,
  routes,
  authenticator: {
    authenticate: async ({ body, ...signed }) => {
      if (body.length % 2) await new Promise(setImmediate)
      const detail = JSON.stringify({ ...signed, body: Buffer.from(body).toString('latin1') })
      throw new OperationError('UNAUTHENTICATED', { detail })
    },
    redeem: async () => undefined,
    takeUsed: () => [],
    forget() {},
  },
  admission: {
    admit: () => ({}) as never,
    admitUpTo: () => ({}) as never,
    pace: {} as never,
    letOthersRun: () => undefined,
  },
  bodyLimitBytes: 500,
  timeoutMs: 10_000,
})
// Two proxies, so that a chain of addresses is followed.
const clientOf = createClientAddress(2)
/** Ids in a row, the same for both servers. */
const createRow = () => {
  let next = 0
  return {
    ids: { uuid: () => `id-${next++}`, bytes: systemIds.bytes },
    reset: () => {
      next = 0
    },
  }
}
/** Operations that the fast path answered. */
let fastAnswers = 0
const start = async (isFront: boolean) => {
  const { ids, reset } = createRow()
  const network = { chain: 'c', network: 'm' } as Network
  const stored = {
    ...{ credential_id: 'c', organization_id: 'o', role: 'ROLE_MEMBER' as const },
    ...{ expire_time: null, scopes: null, allowed_client_networks: null },
  }
  const principals = new Map([
    ['k', principalFrom(stored)],
    ['expired', principalFrom({ ...stored, expire_time: new Date(0) })],
    ['elsewhere', principalFrom({ ...stored, allowed_client_networks: ['192.0.2.0/24'] })],
    ['other', principalFrom({ ...stored, scopes: ['q:read'] })],
  ])
  const plain = createGatewayFront({
    networks: new Map([['/c/m', network]]),
    keys: { principalOf: (key: string) => principals.get(key) } as never,
    serve,
    // No body is as large as those that are counted by their length.
    admission: {} as never,
    bodyLimitBytes: 1_000,
    clock: systemClock,
    ids: systemIds,
    log: silentLog,
    access: { isSampled: () => false, follow: (_call, done) => done },
  })
  const operationsFront = createOperationsFront({
    ...{ operations, routes, bodyLimitBytes: 500, ids, log: silentLog },
    onFinished() {},
  })
  const front: GatewayFront = {
    ...plain,
    requestId: (given) => given ?? ids.uuid(),
    answer: (admission, request_id, body, done) =>
      plain.answer(admission, request_id, `${admission.client} ${body}`, done),
  }
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    routes: [{ path: '/v1/*', name: 'operations', handle: operations.handle }],
    direct: createGatewayHandler(front, clientOf),
    ...(isFront && {
      gateway: front,
      operations: {
        ...operationsFront,
        answer: (...request) => {
          fastAnswers++
          return operationsFront.answer(...request)
        },
      },
    }),
    log: silentLog,
    ids,
    clientOf,
    onFinished() {},
  })
  afterAll(server.stop)
  return { port: server.address.port, reset }
}
const servers = await Promise.all([start(false), start(true)])

/** Every byte that comes back until the server ends the connection. */
const ask = ({ port, reset }: (typeof servers)[number], pieces: readonly Buffer[]) =>
  new Promise<string>((resolve) => {
    reset()
    const began = Math.floor(Date.now() / 1000) * 1000
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const chunks: Buffer[] = []
    socket.setNoDelay()
    socket.on('data', (chunk) => chunks.push(chunk as Buffer))
    socket.on('error', () => {})
    const end = () => {
      socket.destroy()
      resolve(withoutDate(Buffer.concat(chunks).toString('latin1'), began))
    }
    socket.on('end', end).on('close', end)
    const write = (at: number) => {
      const piece = pieces[at]
      if (!piece || socket.destroyed) return
      socket.write(piece, () => setImmediate(write, at + 1))
    }
    write(0)
  })

/** The answers with `now` for each date that is one of the time since the request began. */
const withoutDate = (text: string, began: number): string =>
  text.replace(
    /^(date): (\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT)\r$/gim,
    (line, name, date) => {
      const time = Date.parse(date)
      // Node's server keeps the text of a date for up to a second.
      const isNow =
        new Date(time).toUTCString() === date && time >= began - 1_000 && time <= Date.now()
      return isNow ? `${name}: now\r` : line
    },
  )

const signedLines = [
  'x-api-key: k\r\nx-api-nonce: 1\r\nx-api-signature: a',
  'X-Api-Signature: b\r\nx-request-id: r2\r\nx-api-key: k\r\nX-API-NONCE: 2',
  'x-api-key: no key\r\nx-api-nonce: 1\r\nx-api-signature: a',
  'x-api-key: k\r\nx-api-key: k\r\nx-api-nonce: 1\r\nx-api-signature: a',
]
const line = fc.constantFrom(
  'x-a: 1',
  'X-A:',
  'x-a:\t1 ',
  'x-request-id: r1',
  'x-forwarded-for: 192.0.2.1, 2001:DB8::1',
  'X-Forwarded-For:192.0.2.1\r\nx-forwarded-for: ::ffff:192.0.2.2',
  'x-forwarded-for: unknown, 192.0.2.3:80',
  'x-forwarded-for: , ,',
  'x-forwarded-for:',
  'x-api-key: k',
  ...signedLines,
  'Authorization: Bearer k',
  'authorization: bearer  k',
  'AUTHORIZATION: Bearer expired',
  'authorization: Bearer k\r\nAuthorization: Bearer k',
  'authorization: Basic k',
  'authorization: Bearer k x',
  'authorization:Bearer\tk',
  `authorization: Bearer ${'k'.repeat(300)}`,
  'x-forwarded-for: 192.0.2.7',
  'X-Api-Nonce:  1 ',
  'x-api-signature: a\r\nx-api-signature: b',
  'content-type: text/plain',
  'origin: http://x',
  'Connection: keep-alive',
  'connection: Keep-Alive',
  'connection: close',
  'connection: upgrade',
  'Transfer-Encoding: chunked',
  'transfer-encoding: identity',
  'Transfer-Encoding : chunked',
  'Content-Length: 3',
  'content-length: 3, 3',
  'content-length:',
  'content-length: 0x3',
  'content-length: +3',
  'content-length: 3\xa0',
  'content-encoding: gzip',
  'expect: 100-continue',
  'expect: something',
  'host: y',
  ' folded',
  'x-a: \x00',
  'x-a: a\rb',
  'x-a: a\nb',
  'x a: 1',
  'x-a',
  ': 1',
  'te: trailers',
  'upgrade: h2c',
  'x-\xe4: 1',
  'x-a: \xe4',
)
/** The usual values most of the time, so that most streams hold requests that the fast path answers. */
const mostly = <Value>(usual: readonly Value[], others: readonly Value[]) =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...usual) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  )
const request = fc
  .record({
    method: mostly(['POST'], ['post', 'GET', 'POST ']),
    target: mostly(
      ['/c/m/v1/k', '/c/m/v1/k?q', '/v1/q/GetBlock', '/v1/q/GetBlock?q=%20'],
      [
        '/c/m/v1/x',
        '/c/m/v1',
        '/c/m/v1/',
        '/c/m/v1?q',
        '/c/m/v1/?q',
        '/c/n/v1',
        '/c/m/v1/expired',
        '/c/m/v1/elsewhere',
        '/c/m/v1/other',
        '/c/m/v1/ws',
        '/c/m/v1x',
        '/c/n/v1/k',
        '/v1/q/getblock',
        '/v1/q/GetBlock/',
        '/health',
        '*',
        'http://x/c/m/v1/k',
        'HTTP://y:80/v1/q/GetBlock?q',
        'http://a@x/c/m/v1/k',
        'http://x',
        'x',
        '/c/m/v1/ws/k',
        '/c/n/v1/ws/k?q',
      ],
    ),
    version: mostly(['HTTP/1.1'], ['HTTP/1.0', 'HTTP/1.10', 'HTTP/2.0', '']),
    host: mostly(
      ['host: x', 'Host: x:80', 'HOST:[::1]:4000'],
      ['host: ', 'host: a b', 'host: a/b', 'host: a:b', 'host: a@b', undefined],
    ),
    type: mostly(
      ['content-type: application/json', 'content-type: application/json; charset=utf-8'],
      [
        'content-type: application/json ;',
        `content-type: application/json${' '.repeat(200)}x`,
        'content-type: text/plain',
        undefined,
      ],
    ),
    lines: fc.array(line, { maxLength: 1 }),
    body: fc.constantFrom('{}', '[1]', '', '\xc3\xa4', '\xff', 'x'.repeat(1_001)),
    wrongBy: mostly([0], [-1, 1, 20]),
    breaks: mostly(['\r\n'], ['\n']),
  })
  .map(({ method, target, version, host, type, lines, body, wrongBy, breaks }) => {
    const length = `content-length: ${Math.max(0, body.length + wrongBy)}`
    const head = [`${method} ${target} ${version}`, host, type, ...lines, length]
    return `${head.filter((one) => one !== undefined).join(breaks)}${breaks}${breaks}${body}`
  })
/** Ends the connection in any case: by its answer, or because its pieces are not a request. */
const last =
  'POST /c/m/v1/k HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 6\r\n\r\n"last"'

const runs = Number(process.env.FRONT_RUNS ?? 2_000)

test('the fast path answers byte for byte what Node alone answers', {
  timeout: 120_000 + runs * 100,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { minLength: 1, maxLength: 3 }),
      fc.array(fc.nat(600), { maxLength: 2 }),
      async (requests, cuts) => {
        const bytes = Buffer.from(requests.join('') + last + last, 'latin1')
        const places = [0, ...cuts.filter((at) => at < bytes.length).toSorted((a, b) => a - b)]
        const pieces = places.map((at, index) => bytes.subarray(at, places[index + 1]))
        const [alone, withFront] = await Promise.all(servers.map((server) => ask(server, pieces)))
        expect(withFront).toBe(alone)
        expect(alone).not.toBe('')
      },
    ),
    {
      numRuns: runs,
      seed: Number(process.env.FRONT_SEED ?? 20_261_115),
    },
  )
  // The comparison means something only while many requests take the fast path.
  expect(fastAnswers).toBeGreaterThan(runs / 10)
})
