import Type from 'typebox'
import { describe, expect, test } from 'vitest'
import { anyOfIn, operation, requestSchema, responseSchema } from './operation.ts'
import { only } from './variant.ts'

const plain = (value: unknown) => JSON.parse(JSON.stringify(value))

const row = operation({
  summary: 'Find.',
  services: 'TS',
  request: {
    wallet_id: Type.Optional(Type.String()),
    transaction_hash: only('T', Type.Optional(Type.String())),
    transaction_digest: only('S', Type.Optional(Type.String())),
  },
  anyOf: { T: ['wallet_id', 'transaction_hash'], S: ['wallet_id', 'transaction_digest'] },
  response: { found: Type.Boolean(), status: only('S', Type.String()) },
})

describe('at least one of', () => {
  test('may differ by service', () => {
    expect(anyOfIn(row, 'T')).toEqual(['wallet_id', 'transaction_hash'])
    expect(anyOfIn(row, 'S')).toEqual(['wallet_id', 'transaction_digest'])
    expect(anyOfIn(row, 'C')).toEqual([])
  })

  test('may be the same for all, or absent', () => {
    expect(anyOfIn({ ...row, anyOf: ['wallet_id'] }, 'C')).toEqual(['wallet_id'])
    const { anyOf: _, ...without } = row
    expect(anyOfIn(without, 'T')).toEqual([])
  })
})

describe('the schemas', () => {
  test('of a request refuse unknown fields and hold the choice', () => {
    expect(plain(requestSchema(row, 's'))).toMatchInlineSnapshot(`
      {
        "additionalProperties": false,
        "anyOf": [
          {
            "required": [
              "wallet_id",
            ],
          },
          {
            "required": [
              "transaction_digest",
            ],
          },
        ],
        "properties": {
          "transaction_digest": {
            "type": "string",
          },
          "wallet_id": {
            "type": "string",
          },
        },
        "type": "object",
      }
    `)
  })

  test('of a request without a choice', () => {
    expect(plain(requestSchema({ ...row, request: {}, anyOf: [] }, 't'))).toMatchInlineSnapshot(`
      {
        "additionalProperties": false,
        "properties": {},
        "type": "object",
      }
    `)
  })

  test('of an answer have the fields of the service', () => {
    expect(plain([responseSchema(row, 't'), responseSchema(row, 's')])).toMatchInlineSnapshot(`
      [
        {
          "properties": {
            "found": {
              "type": "boolean",
            },
          },
          "required": [
            "found",
          ],
          "type": "object",
        },
        {
          "properties": {
            "found": {
              "type": "boolean",
            },
            "status": {
              "type": "string",
            },
          },
          "required": [
            "found",
            "status",
          ],
          "type": "object",
        },
      ]
    `)
  })
})
