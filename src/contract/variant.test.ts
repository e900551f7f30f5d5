import Type from 'typebox'
import { describe, expect, test } from 'vitest'
import { each, fieldIn, list, only, propertiesIn, record } from './variant.ts'

const plain = (value: unknown) => JSON.parse(JSON.stringify(value))
const text = Type.String()
const number = Type.Integer()

describe('a field', () => {
  test('without annotation is the same everywhere', () => {
    expect(fieldIn(text, 'T')).toBe(text)
    expect(fieldIn(text, 'A')).toBe(text)
  })

  test('of some services is absent from the others', () => {
    const field = only('TS', text)
    expect([fieldIn(field, 'T'), fieldIn(field, 'S')]).toEqual([text, text])
    expect([fieldIn(field, 'P'), fieldIn(field, 'C'), fieldIn(field, 'Q')]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('may differ by service', () => {
    const field = each({ T: text, C: number })
    expect([fieldIn(field, 'T'), fieldIn(field, 'C')]).toEqual([text, number])
    expect(fieldIn(field, 'S')).toBeUndefined()
  })

  test('may have annotations inside annotations', () => {
    const field = only('TC', each({ T: list(record('R', { a: only('T', text) })), C: text }))
    expect(plain(fieldIn(field, 'T'))).toMatchInlineSnapshot(`
      {
        "items": {
          "properties": {
            "a": {
              "type": "string",
            },
          },
          "required": [
            "a",
          ],
          "type": "object",
        },
        "type": "array",
      }
    `)
    expect(fieldIn(field, 'S')).toBeUndefined()
  })

  test('that is a list of what a service does not have is absent', () => {
    expect(fieldIn(list(only('T', text)), 'C')).toBeUndefined()
  })
})

describe('a record', () => {
  const wallet = record('Wallet', { id: text, confirmation: only('SC', Type.Optional(number)) })

  test('has the fields of its service, and says which are required', () => {
    expect(plain([fieldIn(wallet, 'P'), fieldIn(wallet, 'C')])).toMatchInlineSnapshot(`
      [
        {
          "properties": {
            "id": {
              "type": "string",
            },
          },
          "required": [
            "id",
          ],
          "type": "object",
        },
        {
          "properties": {
            "confirmation": {
              "type": "integer",
            },
            "id": {
              "type": "string",
            },
          },
          "required": [
            "id",
          ],
          "type": "object",
        },
      ]
    `)
  })

  test('is handed to onRecord by its name, at any depth', () => {
    const names: string[] = []
    const outer = record('Outer', { wallets: list(wallet) })
    const schema = fieldIn(outer, 'C', (name, resolve) => {
      names.push(name)
      return name === 'Outer' ? resolve() : Type.Ref(name)
    })
    expect(names).toEqual(['Outer', 'Wallet'])
    expect(plain(schema)).toMatchInlineSnapshot(`
      {
        "properties": {
          "wallets": {
            "items": {
              "$ref": "Wallet",
            },
            "type": "array",
          },
        },
        "required": [
          "wallets",
        ],
        "type": "object",
      }
    `)
  })
})

test('a table of fields keeps its order', () => {
  const fields = { b: text, gone: only('T', text), a: number }
  expect(Object.keys(propertiesIn(fields, 'C'))).toEqual(['b', 'a'])
})
