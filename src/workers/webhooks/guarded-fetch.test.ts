import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createReachable } from '../../lib/net/reachable.ts'
import type { GuardedFetchError } from './guarded-exchange.ts'
import { createGuardedFetch } from './guarded-fetch.ts'
import type { Answer, ResolveName } from './guarded-lookup.ts'

let internal: Server
let port: number
let reached: string[] = []

beforeAll(async () => {
  internal = createServer((request, response) => {
    reached.push(`${request.method} ${request.headers.host}${request.url}`)
    if (request.url === '/redirect') response.writeHead(302, { location: '/secret' })
    if (request.url === '/large') return void response.end(Buffer.alloc(1 << 20, 'x'))
    if (request.url === '/gzip') response.writeHead(200, { 'content-encoding': 'gzip' })
    response.end('internal')
  })
  // Both families: an IPv6 spelling must have something to miss.
  await new Promise<void>((resolve) => internal.listen(0, '::', resolve))
  port = (internal.address() as AddressInfo).port
})
afterAll(() => {
  internal.closeAllConnections()
  internal.close()
})

const never: ResolveName = async (hostname) => {
  throw new Error(`${hostname} must not be looked up`)
}
const guard = (resolve: ResolveName = never) =>
  createGuardedFetch({ reachable: createReachable(), allowHttp: true, resolve })
const get = { method: 'GET', timeoutMs: 20_000, maxBytes: 1_000 } as const

const failureOf = async (url: string, resolve?: ResolveName): Promise<string> => {
  const client = guard(resolve)
  try {
    const { status } = await client.request({ ...get, url })
    return `answered ${status}`
  } catch (error) {
    return (error as GuardedFetchError).failure
  } finally {
    await client.stop()
  }
}

const answers = (...addresses: string[]): ResolveName => {
  const all = addresses.map(
    (address): Answer => ({ address, family: address.includes(':') ? 6 : 4 }),
  )
  return async () => all
}

describe('no spelling of an inner address is called', () => {
  test.each([
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '127.255.255.254',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0x7f.0x0.0x0.0x1',
    '0177.0.0.1',
    '017700000001',
    '00000177.00000000.0.1',
    '１２７.０.０.１',
    '①②⑦.⓪.⓪.①',
    '127。0。0。1',
    '%31%32%37.0.0.1',
    '127.0.0.1.',
    '0',
    '0.0.0.0',
    '0x0',
    '10.0.0.1',
    '100.64.0.1',
    '100.100.100.200',
    '169.254.169.254',
    '0xa9fea9fe',
    '2852039166',
    '168.63.129.16',
    '172.16.0.1',
    '192.0.0.8',
    '192.168.1.1',
    '198.18.0.1',
    '203.0.113.7',
    '224.0.0.1',
    '255.255.255.255',
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[0000:0000:0000:0000:0000:ffff:a9fe:a9fe]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b:1::a9fe:a9fe]',
    '[2001::1]',
    '[2001:db8::1]',
    '[2002:7f00:1::]',
    '[3fff::1]',
    '[100::1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[fe80::1]',
    '[fec0::1]',
    '[ff02::1]',
  ])('%s', async (host) => {
    expect(await failureOf(`http://${host}:${port}/secret`)).toBe('forbidden')
  })
})

describe('no name leads to an inner address', () => {
  test.each([
    ['loopback', ['127.0.0.1']],
    ['loopback of IPv6', ['::1']],
    ['a mapped address', ['::ffff:127.0.0.1']],
    ['metadata', ['169.254.169.254']],
    ['a private network', ['10.1.2.3']],
    ['NAT64 of metadata', ['64:ff9b::a9fe:a9fe']],
    ['a link with its zone', ['fe80::1%lo']],
    ['a public address first', ['93.184.216.34', '127.0.0.1']],
    ['a public address last', ['127.0.0.1', '93.184.216.34']],
    ['both families, one bad', ['2606:2800:220:1::1', '::1']],
    ['what is no address', ['localhost']],
  ])('%s', async (_name, addresses) => {
    expect(await failureOf(`http://evil.test:${port}/`, answers(...addresses))).toBe('forbidden')
  })

  test('a server without an answer is refused as well', async () => {
    expect(await failureOf(`http://evil.test:${port}/`, answers())).toBe('name')
  })

  test('an answer that changes after the check is asked for once and used as it was', async () => {
    let asked = 0
    const rebinding: ResolveName = async () => {
      asked++
      return [{ address: asked === 1 ? '127.0.0.1' : '93.184.216.34', family: 4 }]
    }
    expect(await failureOf(`http://evil.test:${port}/`, rebinding)).toBe('forbidden')
    expect(asked).toBe(1)
  })

  test('every new connection is checked anew', async () => {
    let address = '127.0.0.1'
    const client = createGuardedFetch({
      reachable: createReachable(['127.0.0.1']),
      allowHttp: true,
      resolve: async () => [{ address, family: address.includes(':') ? 6 : 4 }],
      maxHosts: 1,
    })
    const call = (host: string) => client.request({ ...get, url: `http://${host}:${port}/` })
    expect(await call('rebind.test')).toMatchObject({ status: 200 })
    // Closes the connection of the other host.
    expect(await call('127.0.0.1')).toMatchObject({ status: 200 })
    reached = []
    address = '::1'
    await expect(call('rebind.test')).rejects.toMatchObject({ failure: 'forbidden' })
    await client.stop()
  })
})

describe('no other way around', () => {
  test.each([
    ['a user name', (at: number) => `http://public.test@127.0.0.1:${at}/`],
    ['a password', (at: number) => `http://a:b@127.0.0.1:${at}/`],
    ['a backslash', (at: number) => `http://127.0.0.1:${at}\\@public.test/`],
    ['a tab', (at: number) => `http://127.0\t.0.1:${at}/`],
    ['a line', (at: number) => `http://127.0.0.1:${at}/\r\nx: y`],
    ['another scheme', (at: number) => `ftp://127.0.0.1:${at}/`],
    ['a file', () => 'file:///etc/passwd'],
    ['a data address', () => 'data:text/plain,x'],
    ['a mail port', () => 'http://93.184.216.34:25/'],
    ['nothing', () => ''],
  ])('%s', async (_name, make) => {
    expect(await failureOf(make(port))).toBe('forbidden')
  })

  test('plain http, unless the operator allows it', async () => {
    const client = createGuardedFetch({ reachable: createReachable(), allowHttp: false })
    await expect(client.request({ ...get, url: 'http://public.test/' })).rejects.toMatchObject({
      failure: 'forbidden',
    })
    await client.stop()
  })

  test('the inner server has not heard anything so far', () => expect(reached).toEqual([]))
})

describe('where the operator allows an address', () => {
  const allowed = () =>
    createGuardedFetch({ reachable: createReachable(['127.0.0.0/8']), allowHttp: true })

  test('it is reached, and nothing else is', async () => {
    const client = allowed()
    const answer = await client.request({ ...get, url: `http://127.0.0.1:${port}/` })
    expect(answer).toMatchObject({ status: 200, body: Buffer.from('internal'), truncated: false })
    const other = client.request({ ...get, url: `http://[::1]:${port}/` })
    await expect(other).rejects.toMatchObject({ failure: 'forbidden' })
    await client.stop()
  })

  test('a redirect is an answer and not followed', async () => {
    const client = allowed()
    reached = []
    const answer = await client.request({ ...get, url: `http://127.0.0.1:${port}/redirect` })
    expect(answer.status).toBe(302)
    expect(reached).toHaveLength(1)
    await client.stop()
  })

  test('an answer is read up to its cap, and not unpacked', async () => {
    const client = allowed()
    const large = await client.request({ ...get, url: `http://127.0.0.1:${port}/large` })
    expect(large).toMatchObject({ status: 200, truncated: true })
    expect(large.body).toHaveLength(1_000)
    const packed = await client.request({ ...get, url: `http://127.0.0.1:${port}/gzip` })
    expect(packed.body.toString()).toBe('internal')
    await client.stop()
  })

  test.each([
    ['a line break in a header', ['x-a', 'b\r\nhost: evil']],
    ['a line break in a name', ['x-a\r\nx-b', 'c']],
    ['a length of its own', ['content-length', '3']],
  ])('%s is not sent', async (_name, headers) => {
    const client = allowed()
    reached = []
    const request = { ...get, method: 'POST', body: 'body', headers } as const
    const answer = client.request({ ...request, url: `http://127.0.0.1:${port}/` })
    await expect(answer).rejects.toMatchObject({ failure: 'invalid' })
    expect(reached).toEqual([])
    await client.stop()
  })

  test('a receiver that says nothing is left after the time limit', async () => {
    const silent = createTcpServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const client = allowed()
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`
    const answer = client.request({ ...get, url, timeoutMs: 50 })
    await expect(answer).rejects.toMatchObject({ failure: 'timeout' })
    await client.stop()
    silent.close()
  })

  test('a signal ends it', async () => {
    const silent = createTcpServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const client = allowed()
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`
    const stopping = new AbortController()
    const answer = client.request({ ...get, url, signal: stopping.signal })
    stopping.abort()
    await expect(answer).rejects.toMatchObject({ failure: 'stopped' })
    await client.stop()
    silent.close()
  })
})
