import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clientGroup, createNetworkList, parseAddress, parseSubnet } from './ip.ts'

describe('an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:DB8:0:0:0::1', '2001:db8::1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::1', '::1'],
    ['192.0.2.01', undefined],
    ['192.0.2', undefined],
    ['3221225985', undefined],
    ['[::1]', undefined],
    ['example.org', undefined],
    ['', undefined],
  ])('%s has the one text %s', (text, expected) => {
    expect(parseAddress(text)).toBe(expected)
  })

  it('keeps its text when it is read again', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const once = parseAddress(text)
        expect(once).toBeDefined()
        expect(parseAddress(once as string)).toBe(once)
      }),
    )
  })
})

describe('a list of networks', () => {
  const list = createNetworkList(['10.0.0.0/8', '192.0.2.7', 'fd00::/8', '2001:db8::1'])

  it.each([
    ['10.255.0.1', true],
    ['::ffff:10.1.2.3', true],
    ['11.0.0.0', false],
    ['192.0.2.7', true],
    ['192.0.2.8', false],
    ['fdff::1', true],
    ['2001:db8:0::1', true],
    ['2001:db8::2', false],
    ['unknown', false],
    ['', false],
  ])('says whether %s is in it', (address, expected) => {
    expect(list.has(address)).toBe(expected)
  })

  it('has everything in /0 of the same family only', () => {
    expect(createNetworkList(['0.0.0.0/0']).has('192.0.2.1')).toBe(true)
    expect(createNetworkList(['0.0.0.0/0']).has('2001:db8::1')).toBe(false)
    expect(createNetworkList(['::/0']).has('2001:db8::1')).toBe(true)
    expect(createNetworkList([]).has('192.0.2.1')).toBe(false)
  })

  it.each(['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0/8', 'fe80::1%lo/64', 'a', ''])(
    'is not made of %s',
    (text) => {
      expect(parseSubnet(text)).toBeUndefined()
      expect(() => createNetworkList([text])).toThrow(RangeError)
    },
  )
})

describe('a group of addresses', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['1::2:3:4:5:6:7', '1:0:2:3::/64'],
    ['unknown', 'unknown'],
  ])('%s is in %s', (address, group) => {
    expect(clientGroup(address)).toBe(group)
  })

  it('is the same for all addresses of a /64 and another one for the next', () => {
    const part = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16))
    const parts = (length: number) => fc.array(part, { minLength: length, maxLength: length })
    const groupOf = (...all: string[][]) =>
      clientGroup(parseAddress(all.flat().join(':')) as string)
    fc.assert(
      fc.property(parts(4), parts(4), parts(4), (net, a, b) => {
        // An IPv4 address inside is a client of its own.
        fc.pre(net.some((one) => one !== '0'))
        expect(groupOf(net, a)).toBe(groupOf(net, b))
        const next = [...net.slice(0, 3), net[3] === '0' ? '1' : '0']
        expect(groupOf(next, a)).not.toBe(groupOf(net, a))
      }),
    )
  })
})
