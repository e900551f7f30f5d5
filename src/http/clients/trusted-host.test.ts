import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { hostNames, isTrustedHost } from './trusted-host.ts'

const asked = (headers: Record<string, string>, localAddress = '127.0.0.1') =>
  isTrustedHost({ headers, socket: { localAddress } } as unknown as IncomingMessage, [
    'portolan.example.org',
  ])

describe('a request is trusted', () => {
  it.each([
    'localhost',
    'localhost:4000',
    'LOCALHOST:4000',
    '127.0.0.1:4000',
    '127.9.9.9',
    '[::1]:4000',
    'portolan.example.org',
    'Portolan.Example.org:443',
  ])('when it names %s', (host) => {
    expect(asked({ host })).toBe(true)
    expect(asked({ host, origin: 'http://localhost:3000' })).toBe(true)
    expect(asked({ host, origin: 'https://portolan.example.org' })).toBe(true)
  })

  it('when it names the address that it was sent to', () => {
    expect(asked({ host: '192.0.2.7:4000' }, '192.0.2.7')).toBe(true)
    expect(asked({ host: '192.0.2.7:4000' }, '::ffff:192.0.2.7')).toBe(true)
    expect(asked({ host: '[2001:db8::7]:4000' }, '2001:db8::7')).toBe(true)
    expect(asked({ host: '192.0.2.8:4000' }, '192.0.2.7')).toBe(false)
  })
})

describe('a request is refused', () => {
  it.each([
    '',
    'evil.example',
    'evil.example:4000',
    '127.0.0.1.evil.example',
    'localhost.evil.example:4000',
    'localhost@evil.example',
    'evil.example#localhost',
    'portolan.example.org.evil.example',
    'a b',
    '[::1',
    '0.0.0.0:4000',
  ])('when it names "%s"', (host) => {
    expect(asked({ host })).toBe(false)
  })

  it('when it names no host', () => {
    expect(asked({})).toBe(false)
  })

  it.each([
    'null',
    '',
    'http://evil.example',
    'http://localhost.evil.example:4000',
    'file://',
    'http://localhost@evil.example',
  ])('when it comes from a page of "%s"', (origin) => {
    expect(asked({ host: 'localhost:4000', origin })).toBe(false)
  })
})

it('a wildcard and nothing name no host', () => {
  expect(
    hostNames([undefined, 'http://0.0.0.0', 'http://[::]', 'http://box', 'https://A.example/x']),
  ).toEqual(['box', 'a.example'])
})
