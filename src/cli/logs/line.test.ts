import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { lineText, readLine } from './line.ts'

const stream = new PassThrough()
const text = JSON.stringify({
  ...{ level: 40, time: '2026-11-16T10:00:00.123Z', pid: 1, hostname: 'h', chain: 'c' },
  ...{ request_id: 'r1', err: { message: 'refused', stack: '…' }, msg: 'node lost' },
})

test('a line of JSON becomes one for people', () => {
  expect(lineText(readLine(text, {})!, stream)).toBe(
    '10:00:00.123 WARN  node lost (refused) chain=c request_id=r1',
  )
  expect(lineText(readLine('not JSON', {})!, stream)).toBe('not JSON')
})

test.each([
  [{ level: 'warn' }, true],
  [{ level: 'error' }, false],
  [{ chain: 'c' }, true],
  [{ chain: 't' }, false],
  [{ request: 'r1' }, true],
  [{ request: 'r2' }, false],
  [{ organization: 'o' }, false],
  [{ grep: 'lost' }, true],
  [{ grep: 'found' }, false],
])('%j passes: %s', (filter, passes) => {
  expect(readLine(text, filter) !== undefined).toBe(passes)
})
