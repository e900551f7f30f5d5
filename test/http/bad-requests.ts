import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import type { Entry } from '../../src/contract/operations/catalogue.ts'
import { type Body, type Shape, sampleOf, shapeOf, validRequest } from './sample-requests.ts'

/** One request that is, or may be, wrong. */
export type Case = {
  name: string
  body: string | Uint8Array
  headers?: Record<string, string>
  /** What the answer must say; random cases leave it open. */
  status?: number
  /** The field that the answer must name. */
  field?: string
}

const text = (value: unknown) => JSON.stringify(value)
const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)))

const bomb = gzipSync('x'.repeat(5_000_000))

/** Bodies that are wrong for every operation, before any field is looked at. */
export const wrongBodies = (entry: Entry): Case[] => {
  const valid = text({ ...validRequest(entry), extra: 'x' })
  const good = text(validRequest(entry))
  const bad = (name: string, body: Case['body'], field?: string): Case => ({
    name,
    body,
    status: 400,
    ...(field !== undefined && { field }),
  })
  const unsupported = (headers: Record<string, string>, body: Case['body'] = good): Case => ({
    name: text(headers),
    body,
    headers,
    status: 415,
  })
  return [
    ...[1, 2, Math.floor(valid.length / 2), valid.length - 1].map((end) =>
      bad(`cut off after ${end}`, valid.slice(0, end)),
    ),
    ...[
      'null',
      '[]',
      '[{}]',
      '"text"',
      '1',
      'true',
      'undefined',
      'NaN',
      '-',
      '\0',
      '{}{}',
      '{},',
    ].map((body) => bad(`body ${body}`, body)),
    ...[
      "{'a':1}",
      '{a:1}',
      '{"a":1,}',
      '{"a":01}',
      '{"a":+1}',
      '{"a":.5}',
      '{"a":0x1}',
      '{"a"}',
    ].map((body) => bad(`almost JSON ${body}`, body)),
    ...['// c\n{}', '/**/{}', '{"a":"\n"}', '{"a":"\\x41"}', '{"a":Infinity}', ' ', '\n\t'].map(
      (body) => bad(`no JSON ${body}`, body),
    ),
    bad('two byte order marks', bytes([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf], good)),
    bad('UTF-16', Buffer.from(good, 'utf16le')),
    bad('invalid UTF-8', bytes('{"a":"', [0xff], '"}')),
    bad('overlong UTF-8', bytes('{"a":"', [0xc0, 0xaf], '"}')),
    bad('a surrogate in UTF-8', bytes('{"a":"', [0xed, 0xa0, 0x80], '"}')),
    bad('UTF-8 cut off', bytes('{"a":"', [0xe2, 0x82])),
    bad('10,000 arrays', '['.repeat(10_000) + ']'.repeat(10_000)),
    bad('10,000 open arrays', '['.repeat(10_000)),
    bad('10,000 objects', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`, 'a'),
    bad('10,000 arrays in a field', `{"deep":${'['.repeat(10_000)}${']'.repeat(10_000)}}`, 'deep'),
    bad('100,000 closing brackets', ']'.repeat(100_000)),
    bad('a key twice', '{"twice":1,"twice":2}', 'twice'),
    bad('a key twice, once escaped', '{"twice":1,"\\u0074wice":2}', 'twice'),
    bad('a key twice further down', '{"a":{"b":[{"c":1,"c":1}]}}', 'a'),
    bad(
      '1,000 unknown fields',
      text(Object.fromEntries([...Array(1_000).keys()].map((n) => [`f${n}`, n]))),
    ),
    bad('a field name of 100,000 characters', text({ ['n'.repeat(100_000)]: 1 })),
    bad('a field name of half a surrogate pair', '{"\\ud800":1}'),
    { name: '2 MiB', body: `{"a":"${'x'.repeat(2 * 1024 * 1024)}"}`, status: 413 },
    unsupported({ 'content-type': 'text/plain' }),
    unsupported({ 'content-type': '' }),
    unsupported({ 'content-type': 'application/x-www-form-urlencoded' }, 'a=1'),
    unsupported({ 'content-type': 'application/json; charset=latin1' }),
    unsupported({ 'content-type': 'application/json, text/plain' }),
    unsupported({ 'content-type': 'application/jsonp' }),
    unsupported({ 'content-type': 'multipart/form-data; boundary=x' }),
    unsupported({ 'content-encoding': 'gzip' }, gzipSync(good)),
    unsupported({ 'content-encoding': 'gzip' }, bomb),
    unsupported({ 'content-encoding': 'br' }),
    unsupported({ 'content-encoding': 'identity, gzip' }),
  ]
}

/** Names that no request has. */
const strangeNames = [
  'nonsense',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '$ref',
  'a.b',
  'a/b',
  'a~b',
  ' ',
  '',
  '0',
  '-1',
  'NaME',
  'wаllet_id', // Cyrillic а
  'walletId',
  '\u202e',
]

/** Requests with a field that does not exist. */
export const unknownFields = (entry: Entry): Case[] =>
  strangeNames.map((name) => ({
    name: `unknown field ${text(name)}`,
    // Written manually: an object literal would take __proto__ for its prototype.
    body: `{${[...parts(validRequest(entry)), `${text(name)}:1`].join()}}`,
    status: 400,
    field: name === '' ? '""' : name,
  }))

const parts = (request: Body) =>
  Object.entries(request).map(([name, value]) => `${text(name)}:${text(value)}`)

/** Requests that are valid except for a duplicate field: two readers could disagree about it. */
export const repeatedFields = (entry: Entry): Case[] => {
  const { properties = {} } = shapeOf(entry)
  const request = validRequest(entry)
  const [name] = [...Object.keys(request), ...Object.keys(properties)]
  const shape = properties[name ?? '']
  if (name === undefined || shape === undefined) return []
  const once = parts({ ...request, [name]: sampleOf(shape) })
  const again = `${text(name)}:${text(sampleOf(shape))}`
  const escaped = again.replace(
    /^"(.)/,
    (_, char: string) => `"\\u00${char.charCodeAt(0).toString(16)}`,
  )
  return [again, escaped].map((part) => ({
    name: `${part} once more`,
    body: `{${[...once, part].join()}}`,
    status: 400,
    field: name,
  }))
}

/** Requests in which one field is wrong, as JSON texts of its value. */
export const wrongFields = (entry: Entry): Case[] => {
  const shape = shapeOf(entry)
  const request = validRequest(entry)
  return Object.entries(shape.properties ?? {}).flatMap(([name, property]) => {
    const { [name]: _, ...rest } = request
    const missing = shape.required?.includes(name)
      ? [{ name: `${name} missing`, body: text(rest), status: 400, field: name }]
      : []
    const wrong = [...new Set(wrongValues(property))].map((value) => ({
      name: `${name}: ${value.slice(0, 60)}`,
      body: `{${[...parts(rest), `${text(name)}:${value}`].join()}}`,
      status: 400,
      field: name,
    }))
    return [...missing, ...wrong]
  })
}

/** Requests with two fields that exclude each other. */
export const excludedFields = (entry: Entry): Case[] => {
  const { properties = {} } = shapeOf(entry)
  return (entry.row.exclusive ?? []).map((pair) => {
    const both = Object.fromEntries(pair.map((name) => [name, sampleOf(properties[name] as Shape)]))
    return {
      name: `${pair.join(' and ')} together`,
      body: text({ ...validRequest(entry), ...both }),
      status: 400,
      field: pair[1],
    }
  })
}

const never = [
  'null',
  '1e309',
  '-1e309',
  '"\\u0000"',
  '"\\ud800"',
  '"a\\udc00b"',
  '{"__proto__":1}',
]
const notText = ['1', 'true', '[]', '{}', '["a"]', '0.5', '9007199254740993']
const notNumber = ['"1"', '"1"', 'true', '[]', '{}', '[1]', '""']
const edges = ['1.5', '9007199254740992', '9007199254740993', '1e16', '-9007199254740993', '1e-7']

/** JSON texts that the schema must refuse. */
const wrongValues = (shape: Shape): string[] => {
  if (shape.enum) return [...never, ...notText, '""', '"ASSET_TYPE_X"', '"role_admin"', '" "']
  switch (shape.type) {
    case 'boolean':
      return [...never, '1', '0', '"true"', '""', '[]', '{}', '[true]']
    case 'integer':
      return [
        ...never,
        ...notNumber,
        ...edges,
        text((shape.minimum ?? 0) - 1),
        ...(shape.maximum === undefined ? [] : [text(shape.maximum + 1)]),
      ]
    case 'array':
      return [
        ...never,
        '1',
        'true',
        '{}',
        '"a"',
        '[]',
        '[null]',
        '[1]',
        '[[]]',
        '[{}]',
        text(Array((shape.maxItems ?? 1_000) + 1).fill('x')),
        '{"length":1,"0":"x"}',
      ]
    case 'object':
      return [...never, '1', 'true', '[]', '"a"', '{"x":1}', '{"constructor":{}}', '[{}]']
    default:
      return [...never, ...notText, ...wrongTexts(shape)]
  }
}

const wrongTexts = ({ minLength = 0, maxLength, pattern }: Shape): string[] => [
  ...(minLength > 0 ? ['""'] : []),
  ...(maxLength === undefined
    ? []
    : [
        text('1'.repeat(maxLength + 1)),
        text('1'.repeat(20_000)),
        // As many characters as a name of 50 letters has on the screen, but far more of them.
        text(`e${'\u0301'.repeat(maxLength + 1)}`),
        text('\u{1f600}'.repeat(maxLength + 1)),
      ]),
  ...(pattern === undefined
    ? []
    : ['" "', '"\\n"', '"é"', '"ａ"', '"0x"', '"%00"', '"../.."', `"' or 1=1"`, '"-"'].filter(
        (value) => !new RegExp(pattern, 'u').test(JSON.parse(value)),
      )),
]

/** Mutations of a valid request by chance: any field gets any value, fields come and go. */
export const randomRequests = (entry: Entry, count: number, seed: number): Case[] => {
  const shape = shapeOf(entry)
  const names = Object.keys(shape.properties ?? {})
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.string({ unit: 'grapheme', maxLength: 2_100 }),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.stringMatching(/^0x[0-9a-fA-F]{38,42}$/),
    fc.constantFrom(...strangeNames),
  )
  const name = fc.oneof(
    fc.constantFrom('extra', ...names),
    fc.constantFrom(...strangeNames),
    fc.string(),
  )
  const change = fc.record({ name, value, how: fc.constantFrom('set', 'set', 'drop', 'wrap') })
  const requests = fc.array(change, { minLength: 1, maxLength: 4 }).map((changes) => {
    const request = new Map(Object.entries(validRequest(entry)))
    for (const { name, value, how } of changes) {
      if (how === 'drop') request.delete(name)
      else request.set(name, how === 'wrap' ? [request.get(name) ?? null] : value)
    }
    return `{${[...request].map(([key, field]) => `${text(key)}:${text(field)}`).join()}}`
  })
  return fc
    .sample(requests, { numRuns: count, seed })
    .map((body) => ({ name: `by chance: ${body.slice(0, 200)}`, body }))
}
