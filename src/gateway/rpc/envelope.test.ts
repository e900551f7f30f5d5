import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createEnvelopeReader, maxDepth } from './envelope.ts'

const read = createEnvelopeReader({ batchLimit: 10 })

/** A space in front keeps a body from the short way, which only takes calls in the usual spelling. */
const readInFull = (body: string) => read(` ${body}`)

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
const call = (params: string, id = '1', method = 'eth_call') =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`

test.each([
  ['a usual call', call('[{"to":"0x1"},"latest"]')],
  ['no params', call('[]')],
  ['an id with a leading zero', call('[]', '01')],
  ['a long id', call('[]', '1234567890123456')],
  ['an id that is a text', call('[]', '"a"')],
  ['a negative id', call('[]', '-1')],
  ['an escape in the name', call('[]', '1', 'eth\\u005fcall')],
  ['a member behind the params', call('[],"id":2')],
  ['params twice', call('[1],"params":[2]')],
  ['a bracket too many', call('[]]')],
  ['an object as params', call('{"a":1}')],
  ['null as params', call('null')],
  ['spaces around the params', call(' [1] ')],
  ['a space behind the body', `${call('[1]')} `],
  ['the deepest params', call(nested(maxDepth - 1))],
  ['params that are too deep', call(nested(maxDepth))],
  ['an object that is too deep', call(`[${'{"a":'.repeat(maxDepth)}1${'}'.repeat(maxDepth)}]`)],
  ['a raw control character', call('["\n"]')],
  ['bytes of UTF-8', call('["\u00c3\u00a4"]')],
  ['half of a body', call('["a"').slice(0, -3)],
])('%s is read the same on both ways', (_, body) => {
  expect(read(body)).toEqual(readInFull(body))
})

test('any change to a usual call is read the same on both ways', () => {
  const part = fc.constantFrom(
    '"',
    '[',
    ']',
    '{',
    '}',
    ',',
    ':',
    ' ',
    '0',
    '\\',
    '"id":1',
    ',1',
    '\n',
  )
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 3 }),
      fc.nat(),
      fc.nat({ max: 3 }),
      part,
      (args, place, removed, inserted) => {
        const whole = call(JSON.stringify(args))
        const at = place % (whole.length + 1)
        const changed = whole.slice(0, at) + inserted + whole.slice(at + removed)
        for (const body of [whole, changed]) expect(read(body)).toEqual(readInFull(body))
      },
    ),
    { numRuns: 500 },
  )
})

test('with a glance the params are not parsed', () => {
  const { calls } = read(call('[1]'), true)
  expect(calls[0]).toMatchObject({ id: '1', method: 'eth_call', args: [] })
})
