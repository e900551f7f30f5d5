import { describe, expect, it } from 'vitest'
import { isJsonType, operationTypes, rpcTypes } from './json-type.ts'

describe('a content type', () => {
  it.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ; charset=utf-8 ;',
    'application/json;',
  ])('of JSON in UTF-8 is taken: %s', (value) => {
    expect([isJsonType(value, operationTypes), isJsonType(value, rpcTypes)]).toEqual([true, true])
  })

  it.each(['application/json-rpc', 'application/jsonrequest; charset=utf-8'])(
    'of JSON-RPC is taken by the gateway only: %s',
    (value) => {
      expect(isJsonType(value, operationTypes)).toBe(false)
      expect(isJsonType(value, rpcTypes)).toBe(true)
    },
  )

  it.each([
    '',
    'text/plain',
    'application/jsonx',
    'application/json charset=utf-8',
    'application/json; charset=latin1',
    'application/json; charset=utf-8; charset=latin1',
    'application/json; charset=utf-8; charset=utf-8',
    'application/json; a=b',
    'application/json, application/json',
    `application/json${' '.repeat(100)}`,
  ])('of anything else is refused: %s', (value) => {
    expect([isJsonType(value, operationTypes), isJsonType(value, rpcTypes)]).toEqual([false, false])
  })

  it('of any length is decided at once', () => {
    const hostile = [
      `application/json${' '.repeat(15_000)}x`,
      `application/json${';'.repeat(15_000)}x`,
      `application/json; charset=utf-8${' '.repeat(15_000)}x`,
    ]
    const begun = performance.now()
    for (let round = 0; round < 1_000; round++)
      for (const value of hostile) expect(isJsonType(value, rpcTypes)).toBe(false)
    expect(performance.now() - begun).toBeLessThan(1_000)
  })
})
