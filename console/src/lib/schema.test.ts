import { describe, expect, it, test } from 'vitest'
import { fieldsOf, initialValues, type JsonSchema, problemsOf, requestOf } from './schema.ts'

const schema: JsonSchema = {
  type: 'object',
  required: ['name', 'confirmation'],
  anyOf: [{ required: ['wallet_id'] }, { required: ['address'] }],
  properties: {
    name: { type: 'string', maxLength: 50, description: 'a name' },
    wallet_id: { type: 'string' },
    address: { type: 'string', pattern: '^0x[a-f0-9]{4}$', description: '0x and 4 digits' },
    confirmation: { type: 'integer', minimum: 0, maximum: 100, default: 10 },
    kind: { enum: ['A', 'B'] },
    events: { type: 'array', items: { enum: ['X', 'Y'] } },
    addresses: { type: 'array', items: { type: 'string', pattern: '^0x' } },
    remove_all: { type: 'boolean' },
    token: {
      oneOf: [
        { properties: { erc20: { type: 'object', properties: { value: { type: 'string' } } } } },
        { properties: { erc721: { type: 'object', properties: { id: { type: 'string' } } } } },
      ],
    },
  },
}
const fields = fieldsOf(schema)

test('an address with a checksum fits a field of lower-case digits, one with a wrong checksum does not', () => {
  const hex = { type: 'string', pattern: '^0x[a-f0-9]{40}$', description: '0x and 40 digits' }
  const form = fieldsOf({ properties: { address: hex, addresses: { type: 'array', items: hex } } })
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  const lower = address.toLowerCase()
  const wrong = address.replace('5aA', '5aa')
  expect(requestOf(form, { address, addresses: `${lower}\n${address}` })).toEqual({
    request: { address: lower, addresses: [lower, lower] },
    problems: [],
  })
  const { problems } = requestOf(form, { address: wrong, addresses: wrong })
  expect(problems).toEqual([
    { field: 'address', detail: expect.stringContaining('checksum') },
    { field: 'addresses', detail: expect.stringMatching(/^line 1: .*checksum/) },
  ])
})

test('every property becomes a field of its kind', () => {
  expect(
    fields.map(({ name, kind, required, needsOne }) => ({ name, kind, required, needsOne })),
  ).toMatchInlineSnapshot(`
    [
      {
        "kind": "text",
        "name": "name",
        "needsOne": false,
        "required": true,
      },
      {
        "kind": "text",
        "name": "wallet_id",
        "needsOne": true,
        "required": false,
      },
      {
        "kind": "text",
        "name": "address",
        "needsOne": true,
        "required": false,
      },
      {
        "kind": "integer",
        "name": "confirmation",
        "needsOne": false,
        "required": true,
      },
      {
        "kind": "choice",
        "name": "kind",
        "needsOne": false,
        "required": false,
      },
      {
        "kind": "choices",
        "name": "events",
        "needsOne": false,
        "required": false,
      },
      {
        "kind": "lines",
        "name": "addresses",
        "needsOne": false,
        "required": false,
      },
      {
        "kind": "flag",
        "name": "remove_all",
        "needsOne": false,
        "required": false,
      },
      {
        "kind": "group",
        "name": "token",
        "needsOne": false,
        "required": false,
      },
    ]
  `)
})

describe('requestOf', () => {
  it('leaves out what is empty and keeps types', () => {
    const values = {
      name: ' treasury ',
      address: '0xabcd',
      confirmation: '12',
      events: ['X'],
      addresses: '0x1\n0x2, 0x3',
      'token.erc20.value': '10',
      remove_all: false,
    }
    expect(requestOf(fields, values)).toEqual({
      request: {
        name: 'treasury',
        address: '0xabcd',
        confirmation: 12,
        events: ['X'],
        addresses: ['0x1', '0x2', '0x3'],
        token: { erc20: { value: '10' } },
      },
      problems: [],
    })
  })

  it('names each bad field', () => {
    const { problems } = requestOf(fields, { confirmation: '1.5', addresses: '0x1 1' })
    expect(problems.map(({ field, detail }) => `${field}: ${detail}`)).toMatchInlineSnapshot(`
      [
        "name: is required",
        "confirmation: is a whole number",
        "addresses: line 2 does not have the form: ",
        "wallet_id: one of wallet_id, address is needed",
      ]
    `)
  })

  it('keeps integers between their bounds', () => {
    const { problems } = requestOf(fields, { name: 'a', wallet_id: 'w', confirmation: '101' })
    expect(problems).toEqual([{ field: 'confirmation', detail: 'is between 0 and 100' }])
  })
})

test('initial values are the defaults of required fields and what the page knows', () => {
  expect(initialValues(schema, { wallet_id: 'w', token: { erc20: { value: '1' } } })).toEqual({
    wallet_id: 'w',
    confirmation: '10',
    'token.erc20.value': '1',
  })
})

test('errors of the service belong to their field', () => {
  const problems = [
    { field: 'addresses[3]', detail: 'bad' },
    { field: 'address', detail: 'worse' },
  ]
  expect(problemsOf(problems, 'addresses')).toEqual([problems[0]])
  expect(problemsOf(problems, 'address')).toEqual([problems[1]])
})
