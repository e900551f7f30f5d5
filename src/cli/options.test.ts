import { expect, test } from 'vitest'
import { parseExpiry, parseLimit, parsePort, parseRole, parseSeconds } from './options.ts'

test('ports', () => {
  expect(['0', '4000', '65535'].map(parsePort)).toEqual([0, 4000, 65535])
  for (const text of ['65536', '-1', '1.5', '', '0x10', '1e3', ' 1', 'http'])
    expect(() => parsePort(text)).toThrow('A port is')
})

test('limits', () => {
  expect(['unlimited', 'blocked', '-1', '0', '9007199254740991'].map(parseLimit)).toEqual([
    -1, 0, -1, 0, 9007199254740991,
  ])
  for (const text of ['9007199254740992', '-2', '1.5', '', '1k', '1e3'])
    expect(() => parseLimit(text)).toThrow('A limit is')
})

test('lengths of time', () => {
  expect(['0s', '90m', '12h', '90d'].map(parseSeconds)).toEqual([0, 5_400, 43_200, 7_776_000])
  for (const text of ['', '1', '1w', '-1s', '1.5h', '1h30m'])
    expect(() => parseSeconds(text)).toThrow('A length of time is')
  expect(['never', '2027-01-31T00:00:00Z'].map(parseExpiry)).toEqual([
    'never',
    '2027-01-31T00:00:00Z',
  ])
  expect(Date.parse(parseExpiry('1d'))).toBeGreaterThan(Date.now() + 86_000_000)
})

test('roles', () => {
  expect(['admin', 'ROLE_ADMIN', 'Member', 'role_member'].map(parseRole)).toEqual([
    'ROLE_ADMIN',
    'ROLE_ADMIN',
    'ROLE_MEMBER',
    'ROLE_MEMBER',
  ])
  expect(['owner', 'ROLE_READER'].map(parseRole)).toEqual(['ROLE_OWNER', 'ROLE_READER'])
  expect(() => parseRole('king')).toThrow('A role is')
})
