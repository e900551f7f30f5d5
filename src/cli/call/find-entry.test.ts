import { expect, test } from 'vitest'
import { findEntry, findService, operationNames } from './find-entry.ts'

test('finds an operation', () => {
  expect(findEntry('c', 'RegisterWallet')).toMatchObject({ service: 'c', name: 'RegisterWallet' })
})

test('a near name is suggested, and all others are listed', () => {
  const names = operationNames('t').map((name) => `  ${name}`)
  expect(() => findEntry('t', 'RegisterWalet')).toThrow(
    ['The service t has no operation "RegisterWalet". Did you mean RegisterWallet?', ...names].join(
      '\n',
    ),
  )
  expect(() => findEntry('t', undefined)).toThrow('Which operation of the service t?')
})

test('an operation of another service is named', () => {
  expect(() => findEntry('t', 'CreateTransaction')).toThrow(
    'The service t has no operation "CreateTransaction". It is an operation of the service c.',
  )
})

test('services', () => {
  expect(findService('q')).toBe('q')
  expect(() => findService(undefined)).toThrow('Which service? The services are admin, q, t')
  expect(() => findService('toString')).toThrow('There is no service "toString".')
})
