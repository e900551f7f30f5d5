import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hasDuplicateKeys, joinPath, parseJson } from './json.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const parse = (text: string) => parseJson(bytes(text))
const problemOf = (text: string | Uint8Array) => {
  const result = parseJson(typeof text === 'string' ? bytes(text) : text)
  return result.ok ? undefined : `${result.problem.field}: ${result.problem.detail}`
}

/** JSON text in many spellings: spaces, escapes and numbers that JSON.stringify never writes. */
const spelled = fc.letrec((tie) => {
  const space = fc.constantFrom('', ' ', '\n', '\t ')
  const string = fc
    .array(
      fc.oneof(
        fc.constantFrom(
          'a',
          'é',
          '🚢',
          '{',
          '}',
          '[',
          ']',
          ',',
          ':',
          ' ',
          '\\"',
          '\\\\',
          '\\/',
          '\\n',
        ),
        fc.constantFrom('\\u0061', '\\ud83d\\udea2', '\\u007b', '\\u0022'),
      ),
      { maxLength: 6 },
    )
    .map((parts) => `"${parts.join('')}"`)
  // V8 14 may read an escaped key as `\\` once it has seen such a key in the same place: not our matter,
  // and a key of that name is no field of any request.
  const key = string.filter((quoted) => !JSON.parse(quoted).includes('\\'))
  const number = fc.constantFrom('0', '-0', '1', '-1.5', '1e3', '1E-3', '9007199254740993', '1e309')
  const joined = (open: string, close: string, items: fc.Arbitrary<string>) =>
    fc
      .tuple(fc.array(items, { maxLength: 4 }), space)
      .map(([parts, gap]) => `${open}${gap}${parts.join(`${gap},${gap}`)}${gap}${close}`)
  return {
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom('true', 'false', 'null'),
      number,
      string,
      joined('[', ']', tie('value') as fc.Arbitrary<string>),
      joined(
        '{',
        '}',
        fc
          .tuple(key, space, tie('value') as fc.Arbitrary<string>)
          .map(([key, gap, value]) => `${key}${gap}:${gap}${value}`),
      ),
    ),
  }
}).value as fc.Arbitrary<string>

const hasDuplicates = (text: string) => {
  let keys = 0
  JSON.parse(text, (_, value) => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      keys += Object.keys(value).length
    return value
  })
  return keys !== countKeys(text)
}

/** Counts keys as written, with a scanner of its own. */
const countKeys = (text: string) =>
  [...text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon).length

describe('agrees with JSON.parse', () => {
  test('on every value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
        fc.pre(
          JSON.stringify(value).isWellFormed() && !/\\u(0000|d[89a-f])/.test(JSON.stringify(value)),
        )
        const text = JSON.stringify(value)
        expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) })
      }),
      { numRuns: 500 },
    )
  })

  test('on every spelling, apart from duplicate keys', () => {
    fc.assert(
      fc.property(spelled, (text) => {
        if (hasDuplicates(text)) expect(problemOf(text)).toMatch(/: Duplicate key\.$/)
        else expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) })
      }),
      { numRuns: 2000 },
    )
  })

  test('on invalid JSON', () => {
    const tokens = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      'a',
      '1',
      'true',
      ' ',
      '"a"',
      '\\u0000',
    )
    fc.assert(
      fc.property(fc.array(tokens, { maxLength: 12 }), (parts) => {
        const text = parts.join('')
        let valid = true
        try {
          JSON.parse(text)
        } catch {
          valid = false
        }
        if (!valid) expect(parse(text).ok).toBe(false)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('refuses', () => {
  test.each([
    ['', ': The body is not valid JSON.'],
    ['{', ': The body is not valid JSON.'],
    ['{"a":1}}', ': The body is not valid JSON.'],
    ['{"a":1} {"b":2}', ': The body is not valid JSON.'],
    ["{'a':1}", ': The body is not valid JSON.'],
    ['{"a":1,}', ': The body is not valid JSON.'],
    ['{"a":NaN}', ': The body is not valid JSON.'],
    ['{"a":01}', ': The body is not valid JSON.'],
    ['{"a":"\u0001"}', ': The body is not valid JSON.'],
    ['{"a":"\u0000"}', ': The body is not valid JSON.'],
    ['"unfinished', ': The body is not valid JSON.'],
    ['"unfinished\\"', ': The body is not valid JSON.'],
  ])('%j', (text, problem) => expect(problemOf(text)).toBe(problem))

  test.each([
    ['{"a":1,"a":2}', 'a: Duplicate key.'],
    ['{"a":1,"a":1}', 'a: Duplicate key.'],
    ['{"a":1, "\\u0061" :2}', 'a: Duplicate key.'],
    ['{"\\u0061":1,"a":2}', 'a: Duplicate key.'],
    ['{"\\/":1,"/":2}', '/: Duplicate key.'],
    ['{"":1,"":2}', '"": Duplicate key.'],
    ['{"__proto__":1,"__proto__":2}', '__proto__: Duplicate key.'],
    ['{"x":{"y":[0,{"z":1,"z":2}]}}', 'x.y[1].z: Duplicate key.'],
  ])('duplicate keys: %s', (text, problem) => expect(problemOf(text)).toBe(problem))

  test.each([
    ['{"a":"\\u0000"}', 'a: Contains the character NUL.'],
    ['["x",{"b":"y\\u0000"}]', '[1].b: Contains the character NUL.'],
    ['{"a\\u0000":1}', 'a\uFFFD: Contains the character NUL.'],
    ['{"a":"\\ud800"}', 'a: Contains half of a surrogate pair.'],
    ['{"a":"\\uDC00x"}', 'a: Contains half of a surrogate pair.'],
    ['{"a":"\\udea2\\ud83d"}', 'a: Contains half of a surrogate pair.'],
    ['{"\\ud800":1}', '\uFFFD: Contains half of a surrogate pair.'],
  ])('text that is none: %s', (text, problem) => expect(problemOf(text)).toBe(problem))

  test.each([
    ['a lone byte', [0x22, 0xff, 0x22]],
    ['a cut character', [0x22, 0xe2, 0x82, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])('invalid UTF-8: %s', (_, list) => {
    expect(problemOf(Uint8Array.from(list))).toBe(': The body is not valid UTF-8.')
  })
})

describe('depth', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

  test('is 16 levels unless given', () => {
    expect(problemOf(nested(16))).toBeUndefined()
    expect(problemOf(nested(17))).toBe(`${'[0]'.repeat(16)}: Nested deeper than 16 levels.`)
    expect(parseJson(bytes(nested(3)), 2)).toMatchInlineSnapshot(`
      {
        "ok": false,
        "problem": {
          "detail": "Nested deeper than 2 levels.",
          "field": "[0][0]",
        },
      }
    `)
  })

  test('counts levels, not brackets in strings or side by side', () => {
    expect(problemOf(JSON.stringify(['['.repeat(100), ...Array(100).fill([])]))).toBeUndefined()
  })

  test('of a million costs neither stack nor time', () => {
    const started = performance.now()
    expect(problemOf('{"a":'.repeat(1_000_000))).toMatch(/Nested deeper than 16 levels\.$/)
    expect(performance.now() - started).toBeLessThan(5000)
  })
})

describe('keeps', () => {
  test('__proto__ as a key like any other', () => {
    const result = parse('{"__proto__":{"admin":true}}')
    if (!result.ok) throw new Error('refused')
    expect(Object.keys(result.value as object)).toEqual(['__proto__'])
    expect((result.value as { admin?: boolean }).admin).toBeUndefined()
  })

  test('what follows one byte-order mark, which RFC 8259 lets a parser ignore', () => {
    const mark = [0xef, 0xbb, 0xbf]
    expect(parseJson(Uint8Array.from([...mark, 0x7b, 0x7d]))).toEqual({ ok: true, value: {} })
    expect(parseJson(Uint8Array.from([...mark, ...mark, 0x7b, 0x7d])).ok).toBe(false)
  })

  test('the same key at different places', () => {
    expect(parse('{"a":{"a":[{"a":1},{"a":2}]}}').ok).toBe(true)
  })

  test('a surrogate pair that is whole', () => {
    expect(parse('"\\ud83d\\udea2 \\\\u0000"')).toEqual({ ok: true, value: '🚢 \\u0000' })
  })
})

test('backslashes without end take linear time', () => {
  const started = performance.now()
  parse(`{"a":"${'\\'.repeat(1_000_000)}"}`)
  parse(`{"a":"${'\\"'.repeat(500_000)}"}`)
  expect(performance.now() - started).toBeLessThan(5000)
})

test('paths are written as people write them', () => {
  expect([joinPath('', 'a'), joinPath('a', 'b'), joinPath('a', 3), joinPath('', 0)]).toEqual([
    'a',
    'a.b',
    'a[3]',
    '[0]',
  ])
})

describe('duplicate keys of a text that was parsed before', () => {
  test.each([
    ['[{"a":1,"b":{"a":1}},{"a":1}]', false],
    ['[{"a":1,"a":1}]', true],
    ['[{"b":[{"a":{},"c":1,"a":2}]}]', true],
    ['[{"a":":","b":"\\":"}]', false],
    ['[{"a":1,"\\u0061":1}]', true],
    ['[{"__proto__":1,"__proto__":2}]', true],
    ['[{"1":1,"1":2}]', true],
    ['[]', false],
    ['"a:b"', false],
  ])('%s: %s', (text, expected) => {
    expect(hasDuplicateKeys(text, JSON.parse(text))).toBe(expected)
  })

  test('are found as by the parser, in objects of few names', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd', 'e')
    const { text } = fc.letrec((tie) => ({
      text: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('1', '"x"', 'null'),
        tie('object'),
        tie('array'),
      ),
      array: fc.array(tie('text'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
      object: fc
        .array(fc.tuple(name, tie('text')), { maxLength: 4 })
        .map((members) => `{${members.map(([key, value]) => `"${key}":${value}`).join(',')}}`),
    }))
    fc.assert(
      fc.property(text as fc.Arbitrary<string>, (given) => {
        expect(hasDuplicateKeys(given, JSON.parse(given))).toBe(!parse(given).ok)
      }),
      { numRuns: 500 },
    )
  })
})
