import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createRequestTurns } from './request-turns.ts'

/** A server that answers with the path, and a client that collects the answers. */
const start = async () => {
  let inTurn = 0
  const counter = { most: 0, all: 0 }
  const server = createServer(
    createRequestTurns((request, response) => {
      if (inTurn++ === 0)
        setImmediate(() => {
          inTurn = 0
        })
      counter.all++
      counter.most = Math.max(counter.most, inTurn)
      response.end(`<${request.url}>`)
    }),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  // The server may reset the connection.
  client.on('error', () => {})
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  let text = ''
  client.setEncoding('latin1').on('data', (part: string) => {
    text += part
  })
  return { client, counter, paths: () => [...text.matchAll(/<\/(\d+)>/g)].map(([, path]) => path) }
}

const requests = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => `GET /${from + at} HTTP/1.1\r\nHost: x\r\n\r\n`).join('')
const numbers = (count: number) => Array.from({ length: count }, (_, at) => `${at}`)

test('requests that come at once are taken in turns, and all are answered in their order', async () => {
  const { client, counter, paths } = await start()
  client.write(requests(0, 900))
  await expect.poll(() => paths().length).toBe(900)
  // The connection is read further.
  client.write(requests(900, 100))
  await expect.poll(() => paths().length).toBe(1_000)
  expect(paths()).toEqual(numbers(1_000))
  // The count of a turn begins anew before or after the requests of the next one.
  expect(counter.most).toBeLessThanOrEqual(2 * 32)
})

test('a client that sends thousands of requests ahead is disconnected', async () => {
  const { client, counter } = await start()
  client.write(requests(0, 20_000))
  await expect.poll(() => client.closed).toBe(true)
  expect(counter.all).toBeLessThan(200)
})
