import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import {
  closingQuote,
  jsonText,
  measureJson,
  readString,
  scanArray,
  scanInTurns,
  scanObject,
  skipValue as skip,
  skipSpace,
} from './scan.ts'

// Long texts without escapes are scanned in another way than short ones and those with escapes.
const padding = ' '.repeat(600)
const skipValue = (text: string): number => {
  const end = skip(jsonText(text), 0)
  expect(skip(jsonText(text + padding), 0)).toBe(end)
  return end
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const skippedInTurns = (text: string, length: number): Promise<number | undefined> =>
  new Promise((resolve) => scanInTurns(text, 0, ({ skipped }) => resolve(skipped?.to), length))

describe('scanInTurns', () => {
  test('finds the same end as skipValue, of valid and of damaged values, whatever the length of its parts', async () => {
    const changed = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom('', '"', '\\', '{', ']', ',', '1'))
      .map(([json, at, junk]) => {
        const place = at % (json.length + 1)
        return json.slice(0, place) + junk + json.slice(place + 1)
      })
    const text = fc.oneof(fc.json(), changed)
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 20 }), async (text, length) => {
        expect(await skippedInTurns(text, length)).toBe(skip(jsonText(text), 0))
      }),
      { numRuns: 500 },
    )
  })

  test('keeps the levels of values that are nested deeper than one number has bits', async () => {
    const text = `${'[{"a":'.repeat(100)}1${'}]'.repeat(100)}`
    for (const length of [1, 7, 64]) expect(await skippedInTurns(text, length)).toBe(text.length)
    expect(await skippedInTurns(text.replace(']}', '}}'), 7)).toBe(-1)
  })

  test('lets others have a turn between two parts', async () => {
    let turns = 0
    const count = () => {
      turns++
      immediate = setImmediate(count)
    }
    let immediate = setImmediate(count)
    await skippedInTurns(JSON.stringify(Array.from({ length: 100 }, (_, index) => index)), 10)
    clearImmediate(immediate)
    expect(turns).toBeGreaterThan(20)
  })
})

describe('skipValue', () => {
  test('finds the end of any value, whatever follows it', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom('', '}', ']', ',', ' ', ',"a":1}'), (json, rest) => {
        const text = json.trim()
        const end = skipValue(text + rest)
        // A number may continue with the digits of the rest; none of these begins with one.
        expect(end).toBe(text.length)
      }),
      { numRuns: 2_000 },
    )
  })

  test('agrees with JSON.parse about damaged values', () => {
    const damaged = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', '"', '\\', '{', ']', ',', ':', '1', '\n', 'e', '-', '.'),
      )
      .map(([json, at, junk]) => {
        const place = at % (json.length + 1)
        return json.slice(0, place) + junk + json.slice(place + 1)
      })
    fc.assert(
      fc.property(damaged, (text) => {
        const trimmed = text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '')
        expect(skipValue(trimmed) === trimmed.length && trimmed !== '').toBe(isJson(trimmed))
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    '',
    '{',
    '[1,]',
    '{"a"}',
    '{"a":}',
    '{,}',
    '[,]',
    '1.',
    '-',
    '1e',
    '"\\x"',
    '"\\u12g4"',
    '"a',
    '"\t"',
    'tru',
    'nul',
    '{"a":1,}',
    "{'a':1}",
    '[1}',
    '{"a":1]',
  ])('refuses %s', (text) => expect(skipValue(text)).toBe(-1))

  test('distinguishes objects and arrays at any depth', () => {
    for (const depth of [1, 29, 30, 31, 59, 60, 61, 62, 100, 500]) {
      const isObject = Array.from(
        { length: depth },
        (_, level) => (level * level + depth) % 3 === 0,
      )
      const head = isObject.map((is) => (is ? '{"a":' : '[')).join('')
      const tail: string[] = isObject.toReversed().map((is) => (is ? ',"b":1}' : ',2]'))
      const text = `${head}0${tail.join('')}`
      expect(skipValue(text)).toBe(text.length)
      for (const [level, end] of tail.entries()) {
        const wrong = end === ',2]' ? ',2}' : ',"b":1]'
        expect(skipValue(`${head}0${tail.with(level, wrong).join('')}`)).toBe(-1)
      }
    }
  })

  test('refuses a depth that no reply has, without recursion', () => {
    expect(skipValue('['.repeat(1_000_000))).toBe(-1)
    expect(skipValue('['.repeat(5_000) + ']'.repeat(5_000))).toBe(10_000)
  })
})

describe('scanning an object or an array', () => {
  const space = fc.constantFrom('', ' ', '\n\t')

  test('finds each member and element as JSON.parse does', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string(), fc.json()), { maxLength: 8 }),
        space,
        (all, gap) => {
          const members = all.map(([name, value]) => [JSON.stringify(name), value.trim()] as const)
          const inside = members.map((one) => one.join(`${gap}:${gap}`)).join(`${gap},${gap}`)
          const text = `{${gap}${inside}${gap}}`
          const found: [string, string][] = []
          const end = scanObject(jsonText(`${text}x`), 0, (name, from, to) => {
            found.push([name, text.slice(from, to)])
            return true
          })
          expect([end, found]).toEqual([text.length, members])
          expect(found.map(([name]) => readString(name))).toEqual(all.map(([name]) => name))
          const list = `[${gap}${members.map(([, value]) => value).join(`${gap},${gap}`)}${gap}]`
          const elements: string[] = []
          const listEnd = scanArray(jsonText(list), 0, (from, to) => {
            elements.push(list.slice(from, to))
            return true
          })
          expect([listEnd, elements]).toEqual([list.length, members.map(([, value]) => value)])
        },
      ),
    )
  })

  test('agrees with JSON.parse about damaged text', () => {
    const text = fc.string({ unit: fc.constantFrom(...'[]{}",:\\1 at'), maxLength: 12 })
    fc.assert(
      fc.property(text, fc.constantFrom('{', '['), (rest, open) => {
        const whole = open + rest
        const end =
          open === '{'
            ? scanObject(jsonText(whole), 0, () => true)
            : scanArray(jsonText(whole), 0, () => true)
        expect(end >= 0 && skipSpace(whole, end) === whole.length).toBe(isJson(whole))
      }),
      { numRuns: 5_000 },
    )
  })

  test('stops when the callback reports it, and at the bound of depth', () => {
    const seen: string[] = []
    const stop = (name: string) => seen.push(name) < 2
    expect(scanObject(jsonText('{"a":1,"b":2,"c":3}'), 0, stop)).toBe(-1)
    expect(seen).toEqual(['"a"', '"b"'])
    for (const [text, depth] of [
      ['{"a":[[]]}', 3],
      ['[[[]]]', 3],
      ['{"a":1}', 1],
    ] as const) {
      const scan = (maxDepth: number) =>
        text.startsWith('{')
          ? scanObject(jsonText(text, maxDepth), 0, () => true)
          : scanArray(jsonText(text, maxDepth), 0, () => true)
      expect([scan(depth), scan(depth - 1)]).toEqual([text.length, -1])
    }
  })
})

test('reads the string that a value stands for', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(readString(JSON.stringify(text))).toBe(text)
    }),
  )
  for (const value of ['1', 'null', '{"a":"b"}', '["a"]', ''])
    expect(readString(value)).toBeUndefined()
})

const free = { maxDepth: Number.POSITIVE_INFINITY, maxValues: Number.POSITIVE_INFINITY }

const countOf = (value: unknown): { least: number; depth: number } => {
  if (typeof value !== 'object' || value === null) return { least: 1, depth: 0 }
  const parts = Object.values(value).map(countOf)
  return {
    least: 1 + parts.reduce((sum, { least }) => sum + least, 0),
    depth: 1 + Math.max(0, ...parts.map(({ depth }) => depth)),
  }
}

describe('measuring JSON', () => {
  it('counts no fewer values than parsing builds, and never more than two for each', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { values } = measureJson(JSON.stringify(value), free)
        const { least } = countOf(value)
        expect(values).toBeGreaterThanOrEqual(least)
        expect(values).toBeLessThanOrEqual(2 * least)
      }),
    )
  })

  it('finds the depth exactly, whatever strings hold', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { depth } = countOf(value)
        const text = JSON.stringify(value)
        expect(measureJson(text, { ...free, maxDepth: depth }).beyond).toBeUndefined()
        if (depth > 0)
          expect(measureJson(text, { ...free, maxDepth: depth - 1 }).beyond).toBe('depth')
      }),
    )
  })

  it('stops at the first value beyond the bound', () => {
    const text = `[${'1,'.repeat(1_000_000)}1]`
    expect(measureJson(text, { ...free, maxValues: 10 })).toEqual({ values: 11, beyond: 'values' })
  })

  it('takes any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'[]{}",:\\1 ') }), (text) => {
        expect(measureJson(text, free).values).toBeGreaterThan(0)
      }),
    )
  })
})

it('finds the end of a string as JSON does', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (inside, behind) => {
      const text = JSON.stringify(inside)
      expect(closingQuote(text + behind, 0)).toBe(text.length - 1)
      expect(closingQuote(text.slice(0, -1), 0)).toBe(-1)
    }),
  )
})
