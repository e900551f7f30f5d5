import { expect, test } from 'vitest'
import {
  maxHeaderBytes,
  packRequestHeaders,
  packResponseHeaders,
  presentHeaders,
} from './attempt-headers.ts'

const attempt_time = new Date('2026-11-16T12:00:00.900Z')

test('a request shows what was sent, without the values of custom headers', () => {
  const request_headers = packRequestHeaders({
    custom: ['user-agent', 'Portolan', 'Authorization', 'Bearer secret'],
    signature: 'v1,abc',
    traceparent: '00-11-22-01',
  })
  expect(request_headers).not.toContain('secret')
  const shown = presentHeaders('an-id', { attempt_time, request_headers, response_headers: null })
  expect(
    shown.request_headers.map(({ header_key, header_value, is_masked }) =>
      is_masked ? `${header_key}: masked` : `${header_key}: ${header_value}`,
    ),
  ).toEqual([
    'traceparent: 00-11-22-01',
    'user-agent: Portolan',
    'Authorization: masked',
    'webhook-signature: v1,abc',
    'content-type: application/json',
    'webhook-id: an-id',
    'webhook-timestamp: 1794830400',
    'accept-encoding: identity',
  ])
})

test('a custom user agent is masked too', () => {
  const packed = packRequestHeaders({
    ...{ custom: ['user-agent', 'token'], signature: 's', traceparent: undefined },
  })
  expect(packed).not.toContain('token')
})

test('an answer keeps its headers in order, without cookies', () => {
  const response_headers = packResponseHeaders(
    {},
    {
      'content-type': 'text/plain',
      'set-cookie': ['session=secret', 'other=secret'],
      via: undefined,
    },
  )
  expect(response_headers).not.toContain('secret')
  const shown = presentHeaders('x', { attempt_time, request_headers: null, response_headers })
  expect(shown).toEqual({
    request_headers: [],
    response_headers: [
      { header_key: 'content-type', header_value: 'text/plain', is_masked: false },
      { header_key: 'set-cookie', header_value: '', is_masked: true },
      { header_key: 'set-cookie', header_value: '', is_masked: true },
      { header_key: 'via', header_value: '', is_masked: false },
    ],
  })
})

test('an answer keeps a bounded number of bytes', () => {
  const headers = Object.fromEntries(
    Array.from({ length: 100 }, (_, at) => [`x-${at}`, 'é'.repeat(100)]),
  )
  const packed = packResponseHeaders({}, headers)!
  expect(Buffer.byteLength(packed)).toBeLessThanOrEqual(maxHeaderBytes + 1)
  expect(JSON.parse(packed).length).toBeGreaterThan(10)
  expect(packResponseHeaders({}, {})).toBeNull()
  expect(packResponseHeaders({}, { 'x-long': 'a'.repeat(maxHeaderBytes) })).toBe('[]')
})

test('answers of one receiver are packed as each of them is', () => {
  const receiver = {}
  const answers = [
    { date: 'now', server: 'a' },
    { date: 'now', server: 'a' },
    { date: 'later', server: 'a' },
    { date: 'later' },
    { date: 'later', via: undefined },
    { date: 'later', server: 'b' },
    { server: 'b', date: 'later' },
    { date: ['later'], server: 'b' },
  ]
  for (const headers of answers)
    expect(packResponseHeaders(receiver, headers)).toBe(packResponseHeaders({}, headers))
})
