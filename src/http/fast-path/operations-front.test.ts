import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { OperationError } from '../../contract/errors/errors.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import type { Finished } from '../exchange.ts'
import type { OperationCall } from '../operations.ts'
import { createRoutes } from '../routes.ts'
import { startServer } from '../server.ts'
import type { GatewayFront } from './gateway-front.ts'
import { createOperationsFront } from './operations-front.ts'

const start = async (perform: (call: OperationCall) => Promise<string>) => {
  const finished: Finished[] = []
  const onFinished = (one: Finished) => void finished.push(one)
  const server = await startServer({
    ...{ host: '127.0.0.1', port: 0, routes: [], log: silentLog, onFinished },
    gateway: { bodyLimitBytes: 9, find: () => undefined } as Partial<GatewayFront> as GatewayFront,
    operations: createOperationsFront({
      ...{
        operations: { perform },
        routes: createRoutes({}),
        bodyLimitBytes: 100,
        ids: systemIds,
        log: silentLog,
      },
      onFinished,
    }),
  })
  onTestFinished(server.stop)
  const client = connect({ port: server.address.port, host: '127.0.0.1', allowHalfOpen: true })
  onTestFinished(() => void client.destroy())
  client.setEncoding('utf8').on('error', () => {})
  await once(client, 'connect')
  return { server, client, finished }
}

const request = (body: string, more = '') =>
  `POST /v1/q/GetBlock?a=b HTTP/1.1\r\nhost: x\r\nX-Api-Key: k\r\n${more}content-length: ${body.length}\r\n\r\n${body}`

it('answers with the headers of the operation and the body in bytes', async () => {
  const { client, finished } = await start(async ({ target, headers, body, setHeader }) => {
    setHeader('RateLimit', 'r')
    return JSON.stringify([target, headers['x-api-key'], body.toString(), 'ä'])
  })
  client.write(request('{}', 'x-request-id: mine\r\n'))
  const [text] = await once(client, 'data')
  const [head, body] = text.split('\r\n\r\n')
  expect(JSON.parse(body)).toEqual(['/v1/q/GetBlock?a=b', 'k', '{}', 'ä'])
  expect(head.replace(/Date: .*/, 'Date: …').split('\r\n')).toEqual([
    'HTTP/1.1 200 OK',
    'x-request-id: mine',
    'x-content-type-options: nosniff',
    'RateLimit: r',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'Date: …',
    'Connection: keep-alive',
    'Keep-Alive: timeout=65',
  ])
  await expect.poll(() => finished).toMatchObject([{ path: '/v1/q/GetBlock', status: 200 }])
})

it('answers one after the other, and a failure as a problem', async () => {
  const { client, finished } = await start(async ({ body }) => {
    await new Promise(setImmediate)
    if (body.length === 1)
      throw new OperationError('BLOCK_NOT_FOUND', {
        ...{ headers: { 'Retry-After': '2' }, retryAfter: 2 },
      })
    return 'fine'
  })
  client.write(request('1') + request('22'))
  let text = ''
  client.on('data', (chunk) => {
    text += chunk
  })
  await expect.poll(() => text).toMatch(/^HTTP\/1\.1 404 .*BLOCK_NOT_FOUND.*200 OK.*fine$/s)
  expect(text.match(/retry-after/gi)).toHaveLength(1)
  await expect.poll(() => finished.map(({ status }) => status)).toEqual([404, 200])
})

it.each(['leaves', 'says its last word'])('ends the work for a caller who %s', async (how) => {
  const { promise: begun, resolve } = Promise.withResolvers<AbortSignal>()
  const { client, finished } = await start(({ signal }) => {
    resolve(signal)
    return new Promise(() => {})
  })
  client.write(request('{}'))
  const signal = await begun
  if (how === 'leaves') client.destroy()
  else client.end()
  await expect.poll(() => signal.aborted).toBe(true)
  await expect.poll(() => finished).toMatchObject([{ status: 499 }])
})

it('lets work under way end when the server stops, and closes its connection', async () => {
  const { promise: begun, resolve } = Promise.withResolvers<() => void>()
  const { client, server } = await start(
    () => new Promise((answer) => resolve(() => answer('done'))),
  )
  client.write(request('{}'))
  const finish = await begun
  const stopped = server.stop()
  finish()
  const [text] = await once(client, 'data')
  expect(text).toMatch(/Connection: close\r\n.*done$/s)
  await once(client, 'end')
  client.end()
  await stopped
})
