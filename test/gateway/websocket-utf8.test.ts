import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import WebSocket from 'ws'
import { startTestGateway } from './gateway.ts'
import { startStubNode } from './stub-node.ts'

// The UTF-8 cases of the Autobahn test suite (section 6 and 7.5.1), whose byte sequences are those of
// Markus Kuhn's decoder stress test. An echo server would send a valid text back; this one answers it.
const node = await startStubNode()
const gateway = await startTestGateway([node.url])
const url = `${gateway.base_url.replace('http', 'ws')}/c/mainnet/v1/ws/${gateway.tenant.member.api_key}`

const bytes = (...values: number[]) => Buffer.from(values)
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at)
const greek = bytes(0xce, 0xba, 0xe1, 0xbd, 0xb9, 0xcf, 0x83, 0xce, 0xbc, 0xce, 0xb5)
const incomplete = ['c0', 'e080', 'f08080', 'f8808080', 'fc80808080', 'df', 'efbf', 'f7bfbf']
  .concat(['fbbfbfbf', 'fdbfbfbfbf'])
  .map((hex) => Buffer.from(hex, 'hex'))
const hex = (...texts: string[]) => texts.map((text) => Buffer.from(text, 'hex'))
const complete = new Set([2, 5, 7, 9, 11])

const valid: Record<string, Buffer[]> = {
  'some text': [
    ...['$', '¢', '€', '𤭢'].map((sign) => Buffer.from(`hello${sign}world`)),
    greek,
    Buffer.from('Hello-µ@ßöäüàá-UTF-8!!'),
  ],
  'whole prefixes': [...complete].map((end) => greek.subarray(0, end)),
  'the first of each length': hex('00', 'c280', 'e0a080', 'f0908080'),
  'the last of each length': hex('7f', 'dfbf', 'efbfbf', 'f48fbfbf'),
  boundaries: hex('ed9fbf', 'ee8080', 'efbfbd', 'f48fbfbf'),
  'non-characters': [
    ...hex('efbfbe', 'efbfbf'),
    ...[0xf0, 0xf1, 0xf2, 0xf3, 0xf4].flatMap((first) =>
      [0x8f, 0x9f, 0xaf, 0xbf]
        .filter((second) => (first === 0xf0 ? second !== 0x8f : first < 0xf4 || second === 0x8f))
        .flatMap((second) => [0xbe, 0xbf].map((last) => bytes(first, second, 0xbf, last))),
    ),
  ],
  specials: hex('efbfb9', 'efbfba', 'efbfbb', 'efbfbc', 'efbfbd', 'efbfbe', 'efbfbf'),
}
const invalid: Record<string, Buffer[]> = {
  'text with a surrogate': [Buffer.concat([greek, bytes(0xed, 0xa0, 0x80), Buffer.from('edited')])],
  'broken prefixes': range(1, greek.length + 1)
    .filter((end) => !complete.has(end))
    .map((end) => greek.subarray(0, end)),
  'the first of five and six bytes': hex('f888808080', 'fc8480808080'),
  'the last of four to six bytes': hex('f7bfbfbf', 'fbbfbfbfbf', 'fdbfbfbfbfbf'),
  'beyond the last character': hex('f4908080'),
  'continuation bytes': [
    ...hex('80', 'bf', '80bf', '80bf80', '80bf80bf', '80bf80bf80', '80bf80bf80bf'),
    bytes(...range(0x80, 0xbf)),
  ],
  'lonely start bytes': [
    [0xc0, 0xdf],
    [0xe0, 0xef],
    [0xf0, 0xf7],
    [0xf8, 0xfb],
    [0xfc, 0xfd],
  ].map(([from, to]) => bytes(...range(from!, to!).flatMap((one) => [one, 0x20]))),
  'a missing last byte': incomplete,
  'many missing last bytes': [Buffer.concat(incomplete)],
  'impossible bytes': hex('fe', 'ff', 'fefeffff'),
  'overlong ASCII': hex('c0af', 'e080af', 'f08080af', 'f8808080af', 'fc80808080af'),
  'maximum overlong': hex('c1bf', 'e09fbf', 'f08fbfbf', 'f887bfbfbf', 'fc83bfbfbfbf'),
  'overlong NUL': hex('c080', 'e08080', 'f0808080', 'f880808080', 'fc8080808080'),
  surrogates: hex('eda080', 'edadbf', 'edae80', 'edafbf', 'edb080', 'edbe80', 'edbfbf'),
  'pairs of surrogates': ['eda080', 'edadbf', 'edae80', 'edafbf'].flatMap((high) =>
    hex(`${high}edb080`, `${high}edbfbf`),
  ),
}

/** A message whole, in two halves, and byte by byte. */
const ways: Record<string, (payload: Buffer) => Buffer[]> = {
  'one frame': (payload) => [payload],
  'two frames': (payload) => {
    const half = payload.length >> 1
    return [payload.subarray(0, half), payload.subarray(half)]
  },
  'a frame for each byte': (payload) => [...payload].map((byte) => bytes(byte)),
}

type Outcome = { code: number | undefined; messages: string[] }

/** Sends a message and returns the answer or the close code. */
const exchange = async (frames: readonly Buffer[]): Promise<Outcome> => {
  const ws = new WebSocket(url)
  const messages: string[] = []
  await once(ws, 'open')
  const outcome = new Promise<number | undefined>((resolve) => {
    ws.on('message', (data) => {
      messages.push(String(data))
      resolve(undefined)
    })
    ws.on('close', resolve)
  })
  ws.on('error', () => {})
  for (const [at, frame] of frames.entries())
    ws.send(frame, { binary: false, fin: at === frames.length - 1 })
  const code = await outcome
  ws.terminate()
  return { code, messages }
}

describe.each(Object.keys(ways))('a text in %s', (way) => {
  it.each(Object.keys(valid))('that is UTF-8 is answered: %s', async (name) => {
    for (const payload of valid[name]!) {
      const { code, messages } = await exchange(ways[way]!(payload))
      expect([payload.toString('hex'), code]).toEqual([payload.toString('hex'), undefined])
      expect(JSON.parse(messages[0]!).error.code).toBe(-32700)
    }
  })

  it.each(Object.keys(invalid))('that is not UTF-8 ends with 1007: %s', async (name) => {
    for (const payload of invalid[name]!) {
      const outcome = await exchange(ways[way]!(payload))
      expect([payload.toString('hex'), outcome]).toEqual([
        payload.toString('hex'),
        { code: 1007, messages: [] },
      ])
    }
  })
})

it('empty texts in any number of frames are answered', async () => {
  const nothing = bytes()
  for (const frames of [
    [nothing],
    [nothing, nothing, nothing],
    [nothing, Buffer.from('x'), nothing],
  ])
    expect((await exchange(frames)).code).toBeUndefined()
})

it('a reason of the end that is not UTF-8 is answered with 1007 and not echoed', async () => {
  const ws = new WebSocket(url)
  await once(ws, 'open')
  const closed = once(ws, 'close')
  ws.on('error', () => {})
  const socket = (ws as unknown as { _socket: NodeJS.WritableStream })._socket
  // A masked close frame with the code 1000 and a reason that breaks off in a character.
  const payload = Buffer.concat([bytes(0x03, 0xe8), greek.subarray(0, 10)])
  socket.write(Buffer.concat([bytes(0x88, 0x80 | payload.length, 0, 0, 0, 0), payload]))
  const [code, reason] = await closed
  expect([code, String(reason)]).toEqual([1007, ''])
})
