import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as scanner from './reply-scanner.ts'
import { matchReplies } from './reply-scanner.ts'

const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/)
const scanOneReply = (text: string) => scanner.scanOneReply(Buffer.from(text, 'latin1'))
const scanBatch = (text: string) => scanner.scanBatch(Buffer.from(text, 'latin1'))
const toLatin1 = (text: string) => Buffer.from(text).toString('latin1')

/** An answer in any order of keys, with any white space and any further keys. */
const reply = fc
  .record({
    id: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    isOk: fc.boolean(),
    value: fc.json(),
    error: fc.record({ code: fc.integer(), message: fc.string({ unit: 'binary' }) }),
    spaces: fc.array(space, { minLength: 20, maxLength: 20 }),
    order: fc.shuffledSubarray(['jsonrpc', 'id', 'value', 'extra'], { minLength: 4 }),
    isEscaped: fc.boolean(),
  })
  .map(({ id, isOk, value, error, spaces, order, isEscaped }) => {
    const raw = isOk ? value.trim() : JSON.stringify(error)
    const idKey = isEscaped ? '"\\u0069d"' : '"id"'
    const members: Record<string, [key: string, value: string]> = {
      jsonrpc: ['"jsonrpc"', '"2.0"'],
      id: [idKey, `${id}`],
      value: [isOk ? '"result"' : '"error"', raw],
      extra: ['"extra"', '{"id":7,"result":[]}'],
    }
    let next = 0
    const gap = () => spaces[next++ % spaces.length]!
    const text = order
      .map((name) => members[name]!)
      .map(([key, value]) => `${gap()}${key}${gap()}:${gap()}${value}${gap()}`)
      .join(',')
    return { id, isOk, raw: toLatin1(raw), text: toLatin1(`${gap()}{${text}}${gap()}`) }
  })

describe('an answer', () => {
  test('is found in any order of keys, white space and escapes', () => {
    fc.assert(
      fc.property(reply, ({ id, isOk, raw, text }) => {
        const found = scanOneReply(text)
        expect(found).toMatchObject({ id, ok: isOk })
        expect(text.slice(found!.from, found!.to)).toBe(raw)
      }),
      { numRuns: 500 },
    )
  }, 60_000)

  test('is not found when any part of its end is missing', () => {
    fc.assert(
      fc.property(reply, fc.nat(), ({ text }, cut) => {
        const whole = text.trimEnd()
        expect(scanOneReply(whole.slice(0, cut % whole.length))).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  test('of the usual shape', () => {
    const text = '{"jsonrpc":"2.0","id":12,"result":{"a":"}"}}'
    expect(scanOneReply(text)).toEqual({
      ...{ id: 12, ok: true, from: 34, to: 43, end: 44 },
      raw: '{"a":"}"}',
    })
  })

  test.each([
    ['two ids', '{"jsonrpc":"2.0","id":1,"id":2,"result":1}'],
    ['two results', '{"jsonrpc":"2.0","id":1,"result":1,"result":2}'],
    ['the same key in another spelling', '{"id":1,"result":1,"r\\u0065sult":2}'],
    ['result and error', '{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}'],
    ['neither', '{"jsonrpc":"2.0","id":1}'],
    ['an error that is no object', '{"jsonrpc":"2.0","id":1,"error":"no"}'],
    ['a null error alone', '{"jsonrpc":"2.0","id":1,"error":null}'],
    ['something behind it', '{"jsonrpc":"2.0","id":1,"result":1} x'],
    ['HTML', '<html><body>502 Bad Gateway</body></html>'],
    ['nothing', ''],
    ['a number', '1'],
    ['a damaged result', '{"jsonrpc":"2.0","id":1,"result":{"a":}}'],
    ['a number with a leading zero', '{"jsonrpc":"2.0","id":1,"result":01}'],
    ['a result cut at a brace', '{"jsonrpc":"2.0","id":1,"result":{"a":{"b":1}'],
  ])('with %s is none', (_, text) => expect(scanOneReply(text)).toBeUndefined())

  test.each([
    ['null', -1],
    ['"7"', -1],
    ['-3', -1],
    ['7.0', 7],
    ['{}', -1],
  ])('with the id %s has the id %i', (id, expected) => {
    expect(scanOneReply(`{"jsonrpc":"2.0","id":${id},"result":1}`)?.id).toBe(expected)
  })

  test('of JSON-RPC 1.0 with a null beside what counts', () => {
    expect(scanOneReply('{"id":1,"result":5,"error":null}')).toMatchObject({ ok: true, id: 1 })
    expect(scanOneReply('{"id":1,"result":null,"error":{"code":1}}')).toMatchObject({ ok: false })
  })
})

describe('a batch', () => {
  test('is split whatever its answers contain', () => {
    fc.assert(
      fc.property(fc.array(reply, { minLength: 1, maxLength: 8 }), space, (replies, gap) => {
        const text = `${gap}[${replies.map((one) => one.text).join(',')}]${gap}`
        const found = scanBatch(text)!
        expect(found.map(({ from, to }) => text.slice(from, to))).toEqual(replies.map((r) => r.raw))
        expect(found.map(({ id }) => id)).toEqual(replies.map((one) => one.id))
      }),
      { numRuns: 500 },
    )
  })

  test.each(['[]', '[', '{}', '[1]', '[{"id":1,"result":1}', '[{"id":1,"result":1},]'])(
    'is not %s',
    (text) => expect(scanBatch(text)).toBeUndefined(),
  )

  test.each([
    ['missing', [10, 11]],
    ['there twice', [10, 11, 11]],
    ['with a foreign id', [10, 11, 99]],
    ['one too many', [10, 11, 12, 13]],
  ])('with an answer %s is not trusted at all', (_, ids) => {
    const replies = ids.map((id) => ({ id, ok: true, from: 0, to: 0, end: 0 }))
    expect(matchReplies([10, 11, 12], replies)).toBeUndefined()
  })

  test('of answers in any order is matched', () => {
    const ids = fc.uniqueArray(fc.nat(), { minLength: 1, maxLength: 50 })
    fc.assert(
      fc.property(
        ids.chain((all) =>
          fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
        ),
        ([ids, shuffled]) => {
          const replies = shuffled.map((id) => ({ id, ok: true, from: 0, to: 0, end: 0 }))
          expect(matchReplies(ids, replies)?.map(({ id }) => id)).toEqual(ids)
        },
      ),
    )
  })
})

describe('a result that the caller parses', () => {
  const isObject = (result: string): boolean => {
    try {
      const value: unknown = JSON.parse(result)
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    } catch {
      return false
    }
  }
  const scanParsed = (text: string) =>
    scanner.scanOneReply(Buffer.from(text, 'latin1'), () => isObject)
  const usual = (result: string) => `{"jsonrpc":"2.0","id":7,"result":${result}}`

  test('is cut as by the scan', () => {
    const part = fc.constantFrom('"', '{', '}', ',', ' ', '\n', '1', '"error":{}', ',"id":8')
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 3 }),
        fc.nat(),
        fc.nat({ max: 3 }),
        part,
        (value, place, removed, inserted) => {
          const whole = usual(toLatin1(JSON.stringify({ value })))
          const at = place % (whole.length + 1)
          const changed = whole.slice(0, at) + inserted + whole.slice(at + removed)
          for (const text of [whole, changed]) expect(scanParsed(text)).toEqual(scanOneReply(text))
        },
      ),
      { numRuns: 500 },
    )
  })

  test.each([
    ['a line break at the end', `${usual('{"a":1}')}\n`],
    ['spaces around it', usual(' {"a":1} ')],
    ['a member behind it', usual('{"a":1},"extra":1')],
    ['a second result', usual('{"a":1},"result":{}')],
    ['no object', usual('null')],
    ['an error', '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""}}'],
  ])('%s', (_, text) => {
    expect(scanParsed(text)).toEqual(scanOneReply(text))
  })
})

describe('a long reply', () => {
  const inTurns = (text: string) =>
    new Promise((resolve) =>
      scanner.scanOneReplyInTurns(Buffer.from(text, 'latin1'), undefined, resolve),
    )
  const result = JSON.stringify(
    Array.from({ length: 20_000 }, (_, id) => ({ id, data: '0xabcdef' })),
  )
  const usual = `{"jsonrpc":"2.0","id":7,"result":${result}}`

  test.each([
    ['in the usual order', usual],
    ['with its result before its id', `{"jsonrpc":"2.0","result":${result},"id":7}`],
    ['in any other order', `{"result":${result},"id":7,"jsonrpc":"2.0"}`],
    ['with spaces', ` { "jsonrpc":"2.0","id":7,"result":${result} }\n`],
    ['with an escape', usual.replace('0xabcdef', '\\u0041')],
  ])('%s is read as a short one is', async (_, text) => {
    expect(text.length).toBeGreaterThan(524_288)
    const reply = await inTurns(text)
    expect(reply).toMatchObject({ id: 7, ok: true })
    expect(reply).toEqual(scanOneReply(text))
  })

  test.each([
    ['cut off', usual.slice(0, -100)],
    ['damaged', usual.replace('},{', '}{')],
    ['followed by something', `${usual}x`],
    ['with two results', usual.replace(/\}$/, ',"result":1}')],
    ['with a control character', usual.replace('0xabcdef', '\n')],
  ])('%s is none', async (_, text) => {
    expect(await inTurns(text)).toBeUndefined()
    expect(scanOneReply(text)).toBeUndefined()
  })
})
