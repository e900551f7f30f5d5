import { describe, expect, it } from 'vitest'
import { startTestGateway } from './gateway.ts'
import { startStubNode } from './stub-node.ts'

const node = await startStubNode()
const gateway = await startTestGateway([node.url], {
  gateway: { batch_limit: 5, body_limit_bytes: 2048 },
})

const call = '{"jsonrpc":"2.0","id":1,"method":"net_version"}'
const ok = (id: string) => `{"jsonrpc":"2.0","id":${id},"result":"1"}`
const withId = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"net_version"}`

/** The exact answer, or the code of the error and the id that it carries. */
type Expected = string | { code: number; id?: unknown; reason?: string }
type Row = [name: string, body: string, status: number, expected: Expected | Expected[]]

const rows: Row[] = [
  // The examples of the JSON-RPC 2.0 specification, section 7, with methods of the gateway.
  ['a call with positional parameters', call, 200, ok('1')],
  [
    'a call with named parameters',
    '{"jsonrpc":"2.0","method":"eth_getBalance","params":{"address":"0x0","block":"latest"},"id":3}',
    200,
    { code: -32602, id: 3 },
  ],
  ['a notification', '{"jsonrpc":"2.0","method":"net_version","params":[]}', 204, ''],
  ['a notification of an unknown method', '{"jsonrpc":"2.0","method":"foobar"}', 204, ''],
  [
    'a call of a method that does not exist',
    '{"jsonrpc":"2.0","method":"foobar","id":"1"}',
    200,
    { code: -32601, id: '1', reason: 'RPC_METHOD_NOT_FOUND' },
  ],
  [
    'a call with invalid JSON',
    '{"jsonrpc":"2.0","method":"foobar,"params":"bar","baz]',
    400,
    { code: -32700, id: null },
  ],
  [
    'a call with an invalid request object',
    '{"jsonrpc":"2.0","method":1,"params":"bar"}',
    400,
    { code: -32600, id: null },
  ],
  [
    'a batch with invalid JSON',
    '[{"jsonrpc":"2.0","method":"sum","params":[1,2,4],"id":"1"},{"jsonrpc":"2.0","method"]',
    400,
    { code: -32700, id: null },
  ],
  ['an empty batch', '[]', 400, { code: -32600, id: null }],
  ['an invalid batch that is not empty', '[1]', 200, [{ code: -32600, id: null }]],
  [
    'an invalid batch',
    '[1,2,3]',
    200,
    [
      { code: -32600, id: null },
      { code: -32600, id: null },
      { code: -32600, id: null },
    ],
  ],
  [
    'a mixed batch',
    `[${withId('"1"')},{"jsonrpc":"2.0","method":"net_version"},{"foo":"boo"},{"jsonrpc":"2.0","method":"foo.get","params":{"name":"myself"},"id":"5"},${withId('"9"')}]`,
    200,
    [ok('"1"'), { code: -32600, id: null }, { code: -32602, id: '5' }, ok('"9"')],
  ],
  [
    'a batch of notifications',
    '[{"jsonrpc":"2.0","method":"net_version"},{"jsonrpc":"2.0","method":"net_listening","params":[]}]',
    204,
    '',
  ],
  // Ids come back byte for byte.
  ...['12345678901234567890', '-1', '1e3', '1.50', 'null', '""', '"\\u0041"', '"é"', '0'].map(
    (id): Row => [`the id ${id}`, withId(id), 200, ok(id)],
  ),
  ...['{}', '[]', 'true', 'false', '{"a":1}'].map(
    (id): Row => [`the id ${id}`, withId(id), 400, { code: -32600, id: null }],
  ),
  ...['01', '1.', '.5', '+1', 'nul', '0x1', "'a'", '"\n"', '1 2'].map(
    (id): Row => [`the id ${JSON.stringify(id)}`, withId(id), 400, { code: -32700, id: null }],
  ),
  // The envelope.
  ['no body', '', 400, { code: -32700, id: null }],
  ['white space only', ' \n\t ', 400, { code: -32700, id: null }],
  ['white space around', ` \r\n\t${call}\n `, 200, ok('1')],
  ['a batch with white space around', `\n\t [ ${call} ] \n`, 200, [ok('1')]],
  ['something after the object', `${call}x`, 400, { code: -32700, id: null }],
  ['something after the batch', `[${call}]]`, 400, { code: -32700, id: null }],
  ['two objects', `${call}${call}`, 400, { code: -32700, id: null }],
  ['a comma at the end', `[${call},]`, 400, { code: -32700, id: null }],
  ['a string', '"net_version"', 400, { code: -32600, id: null }],
  ['null', 'null', 400, { code: -32600, id: null }],
  ['an array in a batch', `[[${call}]]`, 200, [{ code: -32600, id: null }]],
  [
    'jsonrpc 1.0',
    '{"jsonrpc":"1.0","id":7,"method":"net_version"}',
    400,
    { code: -32600, id: 7, reason: 'INVALID_RPC_REQUEST' },
  ],
  ['jsonrpc as a number', '{"jsonrpc":2.0,"id":7,"method":"net_version"}', 400, { code: -32600 }],
  ['no jsonrpc', '{"id":7,"method":"net_version"}', 400, { code: -32600, id: 7 }],
  ['no method', '{"jsonrpc":"2.0","id":7}', 400, { code: -32600, id: 7 }],
  ['a null for the method', '{"jsonrpc":"2.0","id":7,"method":null}', 400, { code: -32600, id: 7 }],
  [
    'escapes in names and values',
    '{"jsonrp\\u0063":"2\\u002e0","i\\u0064":8,"metho\\u0064":"net\\u005fversion"}',
    200,
    ok('8'),
  ],
  [
    'members in another order',
    '{"params":[],"method":"net_version","id":9,"jsonrpc":"2.0"}',
    200,
    ok('9'),
  ],
  [
    'further members',
    '{"jsonrpc":"2.0","id":1,"method":"net_version","x":{"y":[1]}}',
    200,
    ok('1'),
  ],
  [
    'a broken further member',
    '{"jsonrpc":"2.0","id":1,"method":"net_version","x":{y:1}}',
    400,
    { code: -32700 },
  ],
  [
    'a null for params',
    '{"jsonrpc":"2.0","id":1,"method":"net_version","params":null}',
    200,
    ok('1'),
  ],
  [
    'a string for params',
    '{"jsonrpc":"2.0","id":1,"method":"net_version","params":"x"}',
    400,
    { code: -32600, id: 1 },
  ],
  [
    'two ids',
    '{"jsonrpc":"2.0","id":1,"id":2,"method":"net_version"}',
    400,
    { code: -32600, id: null },
  ],
  [
    'two methods',
    '{"jsonrpc":"2.0","id":1,"method":"net_version","method":"eth_accounts"}',
    400,
    { code: -32600 },
  ],
  [
    'two methods, one escaped',
    '{"jsonrpc":"2.0","id":1,"method":"net_version","m\\u0065thod":"eth_accounts"}',
    400,
    { code: -32600 },
  ],
  [
    'too many parameters',
    '{"jsonrpc":"2.0","id":1,"method":"net_version","params":[1]}',
    200,
    { code: -32602, id: 1 },
  ],
  [
    'a batch at the limit',
    `[${[1, 2, 3, 4, 5].map((id) => withId(`${id}`)).join(',')}]`,
    200,
    [ok('1'), ok('2'), ok('3'), ok('4'), ok('5')],
  ],
  [
    'a batch over the limit',
    `[${[1, 2, 3, 4, 5, 6].map((id) => withId(`${id}`)).join(',')}]`,
    413,
    { code: -32600, id: null, reason: 'BATCH_TOO_LARGE' },
  ],
  [
    'a body over the limit',
    `[${' '.repeat(2048)}]`,
    413,
    { code: -32600, id: null, reason: 'BODY_TOO_LARGE' },
  ],
  ['ten thousand brackets', '['.repeat(2000), 400, { code: -32700, id: null }],
  [
    'a method name of two kilobytes',
    `{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(1900)}"}`,
    200,
    { code: -32601, id: 1 },
  ],
  [
    'a subscription over HTTP',
    '{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}',
    200,
    { code: -32601, id: 1 },
  ],
  [
    'an account method',
    '{"jsonrpc":"2.0","id":1,"method":"eth_accounts"}',
    200,
    { code: -32601, id: 1 },
  ],
  [
    'an inherited name',
    '{"jsonrpc":"2.0","id":1,"method":"constructor"}',
    200,
    { code: -32601, id: 1 },
  ],
]

const check = (answer: string, expected: Expected) => {
  if (typeof expected === 'string') {
    expect(answer).toBe(expected)
    return
  }
  const { error, id, jsonrpc, ...rest } = JSON.parse(answer)
  expect(rest).toEqual({})
  expect(jsonrpc).toBe('2.0')
  expect(error.code).toBe(expected.code)
  expect(error.data).toMatchObject({ source: 'gateway', reason: expect.any(String) })
  if ('id' in expected) expect(id).toEqual(expected.id)
  if (expected.reason) expect(error.data.reason).toBe(expected.reason)
}

/** The texts of the elements of a batch, each as it was sent. */
const elements = (text: string): string[] => {
  const parts: string[] = []
  let depth = 0
  let from = 1
  for (let at = 1; at < text.length - 1; at++) {
    if (text[at] === '{') depth++
    if (text[at] === '}') depth--
    if (depth === 0 && text[at] === ',') {
      parts.push(text.slice(from, at))
      from = at + 1
    }
  }
  return [...parts, text.slice(from, -1)]
}

describe('JSON-RPC over HTTP', () => {
  it.each(rows)('answers %s', async (_name, body, status, expected) => {
    const answer = await gateway.post(body)
    expect(answer.status).toBe(status)
    if (Array.isArray(expected)) {
      const parts = elements(answer.text)
      expect(parts.length).toBe(expected.length)
      for (const [index, one] of expected.entries()) check(parts[index]!, one)
    } else check(answer.text, expected)
    expect(answer.headers['x-request-id']).toMatch(/^[\w.:-]+$/)
    if (status !== 204) expect(answer.headers['content-type']).toBe('application/json')
  })

  it('answers bytes that are no UTF-8', async () => {
    const { status, json } = await gateway.send(`/c/mainnet/v1/${gateway.tenant.member.api_key}`, {
      body: Buffer.from([0x22, 0xff, 0x22]),
      headers: { 'content-type': 'application/json' },
    })
    expect({ status, code: json.error.code }).toEqual({ status: 400, code: -32700 })
  })

  it.each([
    ['application/json', 200],
    ['application/json; charset=utf-8', 200],
    ['Application/JSON;charset="UTF-8"', 200],
    ['application/json-rpc', 200],
    ['text/plain', 415],
    ['application/json; charset=latin1', 415],
    ['application/x-www-form-urlencoded', 415],
    ['', 415],
  ])('answers the content type %j with %i', async (type, status) => {
    const answer = await gateway.post(call, { headers: { 'content-type': type } })
    expect(answer.status).toBe(status)
    if (status === 415) expect(answer.json.error.data.reason).toBe('UNSUPPORTED_MEDIA_TYPE')
  })

  it('refuses a content encoding', async () => {
    const answer = await gateway.post(call, { headers: { 'content-encoding': 'gzip' } })
    expect(answer.status).toBe(415)
  })

  it.each(['GET', 'PUT', 'DELETE', 'OPTIONS'])('refuses %s with 405', async (method) => {
    const path = `/c/mainnet/v1/${gateway.tenant.member.api_key}`
    const { status, headers, json } = await gateway.send(path, { method })
    expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: 'POST' })
    expect(json.error.code).toBe(-32600)
  })

  it('keeps a well-formed request id and makes one otherwise', async () => {
    const kept = await gateway.post(call, { headers: { 'x-request-id': 'my-id.1' } })
    expect(kept.headers['x-request-id']).toBe('my-id.1')
    const made = await gateway.post(call, { headers: { 'x-request-id': 'no good' } })
    expect(made.headers['x-request-id']).not.toBe('no good')
  })
})
