import { describe, expect, test } from 'vitest'
import { createClient } from './client.ts'
import { expectedSignature, listen, reply } from './testing/server.ts'

const credential = { api_key: 'key-1', api_secret: 'sëcret ✓' }

describe('a call', () => {
  test('posts the request as JSON to the path of the operation', async () => {
    const { base_url, seen } = await listen((_, response) =>
      reply(response, 200, { wallet_id: 'w' }),
    )
    const client = createClient({ base_url, ...credential })
    expect(await client.c.RegisterWallet({ name: 'Zoë 🚢' })).toEqual({ wallet_id: 'w' })
    const [{ method, path, headers, body }] = seen as [(typeof seen)[0]]
    expect({
      method,
      path,
      type: headers['content-type'],
      body: body.toString(),
    }).toMatchInlineSnapshot(`
        {
          "body": "{"name":"Zoë 🚢"}",
          "method": "POST",
          "path": "/v1/c/RegisterWallet",
          "type": "application/json",
        }
      `)
  })

  test('has addresses with a checksum in lower case, those of a search too', async () => {
    const { base_url, seen } = await listen((_, response) => reply(response, 200, { results: [] }))
    const client = createClient({ base_url, ...credential })
    const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
    await client.c.RegisterAddress({ wallet_id: 'w', address })
    await client.admin.ListSearchResults({ query: ` ${address} ` })
    const wrong = address.replace('5aA', '5aa')
    await client.admin.ListSearchResults({ query: wrong })
    expect(seen.map(({ body }) => JSON.parse(body.toString()))).toEqual([
      { wallet_id: 'w', address: address.toLowerCase() },
      { query: address.toLowerCase() },
      { query: wrong },
    ])
  })

  test('is signed over nonce, method, path and the raw body', async () => {
    const { base_url, seen } = await listen((_, response) => reply(response, 200, {}))
    const client = createClient({ base_url, ...credential })
    await client.t.RegisterWallet({ name: 'Zoë 🚢' })
    await client.q.GetBlock({ block_number: 1 })
    expect(seen.map((request) => request.headers['x-api-signature'])).toEqual(
      seen.map((request) => expectedSignature(request, credential.api_secret)),
    )
    expect(seen[0]?.headers['x-api-signature']).toMatch(/^[0-9a-f]{64}$/)
    expect(seen[0]?.headers['x-api-key']).toBe('key-1')
  })

  test.each(['/api', '/api/', '/a%20b/c//'])(
    'signs the path prefix %s of base_url',
    async (prefix) => {
      const { base_url, seen } = await listen((_, response) => reply(response, 200, {}))
      await createClient({ base_url: base_url + prefix, ...credential }).c.ListContracts()
      expect(seen[0]?.path).toBe(`${prefix.replace(/\/+$/, '')}/v1/c/ListContracts`)
      expect(seen[0]?.headers['x-api-signature']).toBe(
        expectedSignature(seen[0]!, credential.api_secret),
      )
    },
  )

  test('without a request sends an empty object', async () => {
    const { base_url, seen } = await listen((_, response) => reply(response, 200, {}))
    await createClient({ base_url, ...credential }).admin.ListOrganizations()
    expect(seen[0]?.body.toString()).toBe('{}')
  })

  test('has a fresh nonce of 16 digits, however many run at once', async () => {
    const { base_url, seen } = await listen((_, response) => reply(response, 200, {}))
    const client = createClient({ base_url, ...credential })
    await Promise.all(Array.from({ length: 200 }, () => client.c.ListWallets()))
    const nonces = seen.map((request) => String(request.headers['x-api-nonce']))
    expect(new Set(nonces).size).toBe(200)
    expect(nonces.filter((nonce) => !/^\d{16}$/.test(nonce))).toEqual([])
    expect(Math.abs(Number(nonces[0]?.slice(0, 13)) - Date.now())).toBeLessThan(60_000)
  })

  test('goes through the fetch that is handed in', async () => {
    const urls: unknown[] = []
    const client = createClient({
      base_url: 'https://portolan.example.com',
      ...credential,
      fetch: async (url) => {
        urls.push(url)
        return Response.json({ wallets: [] })
      },
    })
    await client.p.ListWallets()
    expect(urls).toEqual(['https://portolan.example.com/v1/p/ListWallets'])
  })
})

describe('the set of operations', () => {
  const client = createClient({ base_url: 'http://localhost', ...credential })
  const anything = client.c as unknown as Record<string | symbol, unknown>

  test('gives the same function each time', () => {
    expect(client.c.ListWallets).toBe(client.c.ListWallets)
    expect(client.c.ListWallets).not.toBe(client.s.ListWallets)
  })

  test.each([
    'then',
    'toJSON',
    'constructor',
    '__proto__',
    'Get/../x',
    Symbol.iterator,
    Symbol.toPrimitive,
  ])('has no operation %s', (name) => expect(anything[name]).toBeUndefined())

  test('can be awaited and printed', async () => {
    expect(await client.c).toBe(client.c)
    expect(JSON.stringify(client.q)).toBe('{}')
  })

  test('takes a custom fetch, as tests need it', async () => {
    anything.GetAddress = async () => 'mine'
    expect(await (anything.GetAddress as () => unknown)()).toBe('mine')
  })
})

test.each([
  ['', 'base_url must be an http or https URL: '],
  ['localhost:8080', 'base_url must be an http or https URL: localhost:8080'],
  ['ftp://host', 'base_url must be an http or https URL: ftp://host'],
  ['http://host/?a=1', 'base_url must have no query, fragment or credentials'],
  ['http://me:pass@host', 'base_url must have no query, fragment or credentials'],
])('refuses the base_url %j', (base_url, message) => {
  expect(() => createClient({ base_url, ...credential })).toThrow(new TypeError(message))
})

test('refuses an empty credential', () => {
  expect(() => createClient({ base_url: 'http://host', api_key: 'k', api_secret: '' })).toThrow(
    new TypeError('api_key and api_secret are required'),
  )
})
