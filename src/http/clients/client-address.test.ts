import { describe, expect, it } from 'vitest'
import { createClientAddress } from './client-address.ts'

const proxy = '10.0.0.1'

describe('the address of a client', () => {
  it.each([false, 0, [] as string[]])('is that of the connection when %j is trusted', (trust) => {
    const clientOf = createClientAddress(trust)
    expect(clientOf('192.0.2.1', '198.51.100.1')).toBe('192.0.2.1')
    expect(clientOf('::ffff:192.0.2.1', undefined)).toBe('192.0.2.1')
    expect(clientOf('2001:DB8::0:1', undefined)).toBe('2001:db8::1')
    expect(clientOf(undefined, '198.51.100.1')).toBe('unknown')
  })

  it.each([true, 1])('is the last entry when %j proxy is trusted', (trust) => {
    const clientOf = createClientAddress(trust)
    expect(clientOf(proxy, '203.0.113.9, 198.51.100.1')).toBe('198.51.100.1')
    expect(clientOf(proxy, '198.51.100.1')).toBe('198.51.100.1')
    expect(clientOf(proxy, undefined)).toBe(proxy)
  })

  it('is as many entries from the right as proxies are trusted', () => {
    const clientOf = createClientAddress(2)
    expect(clientOf(proxy, '203.0.113.9, 198.51.100.1, 10.0.0.2')).toBe('198.51.100.1')
    expect(clientOf(proxy, '10.0.0.2')).toBe('10.0.0.2')
  })

  it('is the last entry that is in no trusted network', () => {
    const clientOf = createClientAddress(['10.0.0.0/8', 'fd00::/8'])
    expect(clientOf(proxy, '203.0.113.9,198.51.100.1 , 10.0.0.2,fd00::7')).toBe('198.51.100.1')
    expect(clientOf('::ffff:10.0.0.1', '198.51.100.1')).toBe('198.51.100.1')
    expect(clientOf(proxy, '10.0.0.3, 10.0.0.2')).toBe('10.0.0.3')
  })

  it('is that of a connection from outside of the trusted networks, whatever it claims', () => {
    const clientOf = createClientAddress(['10.0.0.0/8'])
    expect(clientOf('192.0.2.1', '198.51.100.1')).toBe('192.0.2.1')
    expect(clientOf(undefined, '198.51.100.1')).toBe('unknown')
  })

  it.each([
    ['198.51.100.1:4711', '198.51.100.1'],
    ['[2001:DB8::1]:4711', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['::ffff:198.51.100.1', '198.51.100.1'],
    ['\t198.51.100.1 ', '198.51.100.1'],
  ])('is read from the form %j', (entry, expected) => {
    expect(createClientAddress(1)(proxy, entry)).toBe(expected)
  })

  it.each([
    '',
    ',',
    '198.51.100.1,',
    'unknown',
    '_hidden',
    '198.51.100.1:x',
    '[198.51.100.1',
    '198.51.100.256',
    'fe80::1%eth0',
    '198.51.100.1 198.51.100.2',
    'x'.repeat(8_000),
  ])('is that of the proxy that passed on %j, which is no address', (entry) => {
    for (const trust of [1, 2, ['10.0.0.0/8']])
      expect(createClientAddress(trust)(proxy, entry)).toBe(proxy)
    expect(createClientAddress(2)(proxy, `${entry}, 10.0.0.2`)).toBe('10.0.0.2')
  })

  it('does not follow a list without end', () => {
    const clientOf = createClientAddress(['10.0.0.0/8'])
    expect(clientOf(proxy, `198.51.100.1${',10.0.0.2'.repeat(1_000)}`)).toBe('10.0.0.2')
  })
})
