import { expect, test } from 'vitest'
import { matchPath, pathBelow, pathTo } from './router.ts'

test('the base path is not part of a place', () => {
  expect(pathBelow('', '/wallets/c/')).toBe('wallets/c')
  expect(pathBelow('/portolan', '/portolan/wallets')).toBe('wallets')
  expect(pathBelow('/portolan', '/portolan')).toBe('')
})

test('patterns match whole paths', () => {
  expect(matchPath('wallets/:chain', 'wallets/c')).toEqual({ chain: 'c' })
  expect(matchPath('wallets/:chain', 'wallets')).toBeUndefined()
  expect(matchPath('wallets/:chain', 'wallets/c/x')).toBeUndefined()
  expect(matchPath('', '')).toEqual({})
  expect(matchPath('wallets/:chain', 'wallets/%zz')).toEqual({ chain: '%zz' })
})

test('ids with any character survive an address', () => {
  const id = 'a/b?c#d%e "<é>'
  const [, chain] = pathTo('wallets', id).split('/')
  expect(matchPath('wallets/:chain', `wallets/${chain}`)).toEqual({ chain: id })
})
