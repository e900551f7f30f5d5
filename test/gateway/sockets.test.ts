import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import { startTestGateway } from './gateway.ts'
import { startStubNode } from './stub-node.ts'

const node = await startStubNode()
const gateway = await startTestGateway([node.url])
const { port } = new URL(gateway.base_url)
const path = `/c/mainnet/v1/${gateway.tenant.member.api_key}`

type Wire = {
  socket: Socket
  text(): string
  size(): number
  isClosed(): boolean
  answers(): string[]
}

const open = (on = port): Wire => {
  const socket = connect({ host: '127.0.0.1', port: Number(on), allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  const chunks: Buffer[] = []
  let isClosed = false
  let size = 0
  socket.on('data', (chunk: Buffer) => {
    size += chunk.length
    chunks.push(chunk)
  })
  socket.on('error', () => {})
  socket.on('end', () => {
    isClosed = true
  })
  const text = () => Buffer.concat(chunks).toString()
  return {
    socket,
    text,
    size: () => size,
    isClosed: () => isClosed,
    answers: () => text().match(/\{"jsonrpc":"2\.0","id":[^\n]*?\}(?=HTTP|$)/g) ?? [],
  }
}

const body = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"net_version"}`
const answer = (id: number) => `{"jsonrpc":"2.0","id":${id},"result":"1"}`
const request = (id: number, { more = '', target = path, version = '1.1' } = {}) =>
  `POST ${target} HTTP/${version}\r\nHost: x\r\nContent-Type: application/json\r\n${more}Content-Length: ${body(id).length}\r\n\r\n${body(id)}`
const got = (wire: Wire, count: number) =>
  waitFor(`${count} answers`, () => wire.answers().length >= count, { everyMs: 5 })

describe('requests on one connection', () => {
  it('are answered one after the other', async () => {
    const wire = open()
    for (let id = 1; id <= 3; id++) {
      wire.socket.write(request(id))
      await got(wire, id)
    }
    expect(wire.answers()).toEqual([1, 2, 3].map(answer))
    expect(wire.text()).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(wire.text()).toMatch(/\r\nDate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/)
    expect(wire.isClosed()).toBe(false)
  })

  it('are answered in order when they come all at once', async () => {
    const wire = open()
    const ids = Array.from({ length: 700 }, (_, index) => index)
    wire.socket.write(ids.map((id) => request(id)).join(''))
    await got(wire, ids.length)
    expect(wire.answers()).toEqual(ids.map(answer))
  })

  it.each([
    ['in the middle of the head', 40],
    ['before the empty line', request(1).indexOf('\r\n\r\n')],
    ['before the body', request(1).length - body(1).length],
    ['in the middle of the body', request(1).length - 5],
  ])('are answered when they are cut %s', async (_where, at) => {
    const wire = open()
    wire.socket.write(request(1).slice(0, at))
    await delay(50)
    wire.socket.write(request(1).slice(at) + request(2))
    await got(wire, 2)
    expect(wire.answers()).toEqual([answer(1), answer(2)])
  })

  it('are answered when a whole one is followed by a part of the next', async () => {
    const wire = open()
    wire.socket.write(request(1) + request(2).slice(0, 60))
    await got(wire, 1)
    wire.socket.write(request(2).slice(60))
    await got(wire, 2)
    expect(wire.answers()).toEqual([answer(1), answer(2)])
  })

  it('are answered byte by byte', async () => {
    const wire = open()
    wire.socket.setNoDelay()
    for (const byte of request(7)) {
      wire.socket.write(byte)
      await delay(0)
    }
    await got(wire, 1)
    expect(wire.answers()).toEqual([answer(7)])
  })

  it('may be for anything else in between', async () => {
    const wire = open()
    wire.socket.write(request(1))
    await got(wire, 1)
    wire.socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
    await waitFor('health', () => wire.text().includes('"ok"'))
    wire.socket.write(request(2))
    await waitFor('the second answer', () => wire.text().includes(answer(2)))
    expect(wire.isClosed()).toBe(false)
  })

  it('are answered in order when the other one is behind in the same chunk', async () => {
    const wire = open()
    wire.socket.write(`${request(1)}GET /health HTTP/1.1\r\nHost: x\r\n\r\n${request(2)}`)
    await waitFor('the second answer', () => wire.text().includes(answer(2)))
    const text = wire.text()
    expect(text.indexOf(answer(1))).toBeLessThan(text.indexOf('"ok"'))
    expect(text.indexOf('"ok"')).toBeLessThan(text.indexOf(answer(2)))
  })

  it('may have a body of many chunks', async () => {
    const wire = open()
    const spaces = ' '.repeat(300_000)
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`
    const length = body(1).length + spaces.length
    wire.socket.write(`${head}Content-Length: ${length}\r\n\r\n${spaces}${body(1)}`)
    await got(wire, 1)
    wire.socket.write(request(2))
    await got(wire, 2)
    expect(wire.answers()).toEqual([answer(1), answer(2)])
  })

  it('may have a body in chunks', async () => {
    const wire = open()
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`
    const hex = body(1).length.toString(16)
    wire.socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n${hex}\r\n${body(1)}\r\n0\r\n\r\n`)
    await got(wire, 1)
  })

  it('end it when they say so', async () => {
    for (const [id, options] of [
      [1, { more: 'Connection: close\r\n' }],
      [2, { version: '1.0' }],
    ] as const) {
      const wire = open()
      wire.socket.write(request(id, options))
      await waitFor('the end', () => wire.isClosed())
      expect(wire.answers()).toEqual([answer(id)])
    }
  })

  it('are answered after the client has said its last word', async () => {
    const wire = open()
    wire.socket.end(request(1))
    await waitFor('the end', () => wire.isClosed())
    expect(wire.answers()).toEqual([answer(1)])
  })

  it('are all answered when the last word comes with the last of many', async () => {
    const wire = open()
    wire.socket.end(request(1) + request(2) + request(3))
    await waitFor('the end', () => wire.isClosed())
    expect(wire.answers()).toEqual([1, 2, 3].map(answer))
  })

  it('wait for 100 Continue where they ask for it', async () => {
    const wire = open()
    const head = request(1, { more: 'Expect: 100-continue\r\n' })
    wire.socket.write(head.slice(0, -body(1).length))
    await waitFor('the go', () => wire.text().includes('100 Continue'))
    wire.socket.write(body(1))
    await waitFor('the answer', () => wire.text().includes(answer(1)))
  })

  it.each([
    ['two lengths', 'Content-Length: 5\r\n'],
    ['a length and chunks', 'Transfer-Encoding: chunked\r\n'],
    ['a sign before the length', 'content-length: +1\r\n'],
    ['an odd space behind a second length', 'content-length: 1\xa0\r\n'],
    ['a folded header', 'x-a: 1\r\n b\r\n'],
    ['a bare line feed', 'x-a: 1\nx-b: 2\r\n'],
    ['a space before the colon', 'x-a : 1\r\n'],
    ['a control character', 'x-a: \x01\r\n'],
  ])('are refused with %s, and nothing behind them is read', async (_what, more) => {
    const wire = open()
    wire.socket.write(request(1, { more }) + request(2), 'latin1')
    await waitFor('the end', () => wire.isClosed())
    expect(wire.text()).toMatch(/^HTTP\/1\.1 400 /)
    expect(wire.text()).not.toContain('"result"')
  })

  it.each([
    ['an odd space behind the length', '\xa0'],
    ['a comma behind the length', ', 5'],
    ['a letter behind the length', 'a'],
  ])('are refused with %s', async (_what, tail) => {
    const wire = open()
    const odd = request(1).replace(/(Content-Length: \d+)/, `$1${tail}`)
    wire.socket.write(odd + request(2), 'latin1')
    await waitFor('the end', () => wire.isClosed())
    expect(wire.text()).toMatch(/^HTTP\/1\.1 400 /)
    expect(wire.text()).not.toContain('"result"')
  })

  it('with a head of more than 16 KiB are refused', async () => {
    const wire = open()
    wire.socket.write(request(1, { more: `x-a: ${'a'.repeat(20_000)}\r\n` }) + request(2))
    await waitFor('the end', () => wire.isClosed())
    expect(wire.text()).toMatch(/^HTTP\/1\.1 431 /)
    expect(wire.text()).not.toContain('"result"')
  })

  it('without a host are refused', async () => {
    const wire = open()
    wire.socket.write(request(1).replace('Host: x\r\n', ''))
    await waitFor('the answer', () => wire.text().includes('MALFORMED_REQUEST'))
    expect(wire.text()).toMatch(/^HTTP\/1\.1 400 /)
  })

  it('with other bytes than UTF-8 are refused', async () => {
    const wire = open()
    const bad = Buffer.concat([Buffer.from(request(1).slice(0, -2)), Buffer.from([0xff, 0x7d])])
    wire.socket.write(bad)
    await waitFor('the answer', () => wire.text().includes('-32700'))
  })

  it('are refused alike with a bad key and an unknown network', async () => {
    const wire = open()
    wire.socket.write(request(1, { target: '/c/mainnet/v1/unknown' }))
    await waitFor('401', () => wire.text().includes('401 Unauthorized'))
    wire.socket.write(request(1, { target: '/c/none/v1/unknown' }))
    await waitFor('404', () => wire.text().includes('404 Not Found'))
    expect(wire.isClosed()).toBe(false)
  })
})

describe('a client that never reads', () => {
  /** Asks for fifty megabytes and reads nothing. */
  const stuff = async (on = port) => {
    node.answer = ({ method }) =>
      method === 'net_listening' ? { result: `"${'x'.repeat(1_000_000)}"` } : undefined
    onTestFinished(() => {
      node.answer = () => undefined
    })
    const wire = open(on)
    wire.socket.pause()
    const call = '{"jsonrpc":"2.0","id":1,"method":"net_listening"}'
    const one = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${call.length}\r\n\r\n${call}`
    node.calls.length = 0
    for (let index = 0; index < 50; index++) wire.socket.write(one)
    let before = 0
    const isStuck = () => {
      const asked = node.calls.length
      const isSame = asked === before
      before = asked
      return isSame && asked > 0
    }
    await waitFor('no more is asked', isStuck, { everyMs: 300 })
    return wire
  }

  it('is not read from either', async () => {
    const wire = await stuff()
    // What fits into the buffers of the kernel, and not all fifty.
    expect(node.calls.length).toBeLessThan(30)
    wire.socket.resume()
    await waitFor('all answers', () => wire.size() > 50_000_000)
  })

  it('a slow reader gets its answer while the server stops', async () => {
    const other = await startTestGateway([node.url], { beside: gateway })
    const wire = await stuff(new URL(other.base_url).port)
    const idle = open(new URL(other.base_url).port)
    idle.socket.write(request(1))
    await got(idle, 1)
    const stopped = other.stop()
    await waitFor('the idle one ends', () => idle.isClosed())
    wire.socket.resume()
    await stopped
    await waitFor('the end', () => wire.isClosed())
    expect(wire.size()).toBeLessThan(30_000_000)
    expect(wire.text().endsWith('x"}')).toBe(true)
  })
})

it('stops within a moment: idle connections end, calls on their way are answered', async () => {
  let release = () => {}
  node.answer = ({ method }) =>
    method === 'net_listening'
      ? new Promise((resolve) => {
          release = () => resolve({ result: 'true' })
        })
      : undefined
  const other = await startTestGateway([node.url], { beside: gateway })
  const idle = open(new URL(other.base_url).port)
  idle.socket.write(request(1))
  await got(idle, 1)
  const busy = open(new URL(other.base_url).port)
  const call = '{"jsonrpc":"2.0","id":5,"method":"net_listening"}'
  node.calls.length = 0
  busy.socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${call.length}\r\n\r\n${call}`,
  )
  await waitFor('the call is there', () => node.calls.length > 0)
  const stopped = other.stop()
  await waitFor('the idle one ends', () => idle.isClosed())
  release()
  await stopped
  expect(busy.text()).toContain('"result":true')
  expect(busy.text()).toContain('Connection: close')
  node.answer = () => undefined
})
