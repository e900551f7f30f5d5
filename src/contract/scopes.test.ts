import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { coversScope, gatewayScope, operationScope, scopePattern } from './scopes.ts'

const pattern = new RegExp(scopePattern)
const services = ['admin', 'q', 't', 's', 'p', 'c'] as const
const needs = [
  ...services.flatMap((service) => [
    operationScope(service, 'read'),
    operationScope(service, 'write'),
  ]),
  ...['c', 'q'].flatMap((chain) =>
    ['mainnet', 'ropsten'].flatMap((network) => [
      gatewayScope(chain, network, 'read'),
      gatewayScope(chain, network, 'write'),
    ]),
  ),
]
/** What a scope allows, spelt out: all needs that it covers. */
const allowed = (...scopes: string[]) => needs.filter((need) => coversScope(new Set(scopes), need))

describe('a scope', () => {
  test.each(['*', '*:read', 'admin:write', 'c:read', 'gateway', 'gateway:read', 'gateway:c'])(
    '%s is well-formed',
    (scope) => expect(scope).toMatch(pattern),
  )
  test.each([
    'gateway:c:read',
    'gateway:c/main-net',
    'gateway:q/mainnet:read',
    'base:read',
    'gateway:base-x/main',
  ])('%s is well-formed', (scope) => expect(scope).toMatch(pattern))
  test.each(['', 'c', 'X:read', 'c:all', 'gateway:write', 'gateway:c/', 'gateway/c', '* ', '**'])(
    '%j is not',
    (scope) => expect(scope).not.toMatch(pattern),
  )

  test('allows exactly what it names', () => {
    expect(allowed('*')).toEqual(needs)
    expect(allowed()).toEqual([])
    expect(allowed('c:read')).toEqual(['c:read'])
    expect(allowed('c:write')).toEqual(['c:read', 'c:write'])
    expect(allowed('*:read')).toEqual(services.map((service) => `${service}:read`))
    expect(allowed('*:write')).toHaveLength(12)
    expect(allowed('gateway')).toHaveLength(8)
    expect(allowed('gateway:read').every((need) => need.endsWith(':read'))).toBe(true)
    expect(allowed('gateway:c/mainnet')).toEqual(['gateway:c/mainnet:read', 'gateway:c/mainnet'])
    expect(allowed('gateway:c:read')).toEqual(['gateway:c/mainnet:read', 'gateway:c/ropsten:read'])
  })
})

test('a scope covers another one exactly when it allows everything that the other one allows', () => {
  const scope = fc.constantFrom(
    ...['*', '*:read', '*:write', 'gateway', 'gateway:read', 'gateway:c', 'gateway:c:read'],
    ...needs,
  )
  fc.assert(
    fc.property(scope, scope, (held, wanted) => {
      const covered = allowed(wanted).every((need) => allowed(held).includes(need))
      expect(coversScope(new Set([held]), wanted)).toBe(covered)
    }),
    { numRuns: 2_000 },
  )
})
