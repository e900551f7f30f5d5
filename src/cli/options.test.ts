import { expect, test } from 'vitest'
import { parseLimit, parsePort, parseRole } from './options.ts'

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

test('roles', () => {
  expect(['admin', 'ROLE_ADMIN', 'Member', 'role_member'].map(parseRole)).toEqual([
    'ROLE_ADMIN',
    'ROLE_ADMIN',
    'ROLE_MEMBER',
    'ROLE_MEMBER',
  ])
  expect(() => parseRole('king')).toThrow('A role is')
})
