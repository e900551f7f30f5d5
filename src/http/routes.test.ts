import { describe, expect, test } from 'vitest'
import { createRoutes } from './routes.ts'

const routes = createRoutes({
  c: { services: ['c'], networks: ['mainnet', 'ropsten'], default_network: 'mainnet' },
  base: { services: ['c', 'q'], networks: ['mainnet', 'sepolia'], default_network: 'mainnet' },
  'ton-main': { services: ['t'], networks: ['mainnet'], default_network: 'mainnet' },
})
const found = (path: string) => {
  const route = routes.find(path)
  return route && [route.entry.service, route.entry.name, route.chain, route.network]
}

describe('an address of an operation', () => {
  test('without a network means the default one of its chain', () => {
    expect(found('/v1/c/ListWallets')).toEqual(['c', 'ListWallets', 'c', undefined])
    expect(found('/v1/base/ListWallets')).toEqual(['c', 'ListWallets', 'base', undefined])
    expect(found('/v1/ton-main/GetAddress')).toEqual(['t', 'GetAddress', 'ton-main', undefined])
    expect(found('/v1/admin/ListOrganizations')?.[2]).toBe('admin')
  })

  test('may name a network; the default one is the same place as without', () => {
    expect(found('/v1/base/sepolia/ListWallets')).toEqual(['c', 'ListWallets', 'base', 'sepolia'])
    expect(found('/v1/base/mainnet/ListWallets')).toEqual(['c', 'ListWallets', 'base', undefined])
  })

  test('of a chain with two variants finds the operations of both', () => {
    expect(found('/v1/base/GetBlock')).toEqual(['q', 'GetBlock', 'base', undefined])
    expect(found('/v1/base/CreateTransaction')?.[0]).toBe('c')
  })

  test('exists for the services of the specification without a chain of their name', () => {
    expect(found('/v1/t/ListWallets')).toEqual(['t', 'ListWallets', 't', undefined])
  })

  test.each([
    '/v1/base/Nothing',
    '/v1/base/goerli/ListWallets',
    '/v1/bse/ListWallets',
    '/v1/t/mainnet/ListWallets',
    '/v1/base/sepolia/ListWallets/more',
    '/v1/base//ListWallets',
    '/v1//ListWallets',
    '/v2/base/ListWallets',
    '/v1/__proto__/ListWallets',
    '/v1/base/GetOrganizationByDomain',
    'v1/base/ListWallets',
  ])('is not %s', (path) => expect(found(path)).toBeUndefined())
})

describe('the refusal of an unknown address', () => {
  test('names the nearest chain or network', () => {
    expect(routes.refusal('/v1/bsae/ListWallets').message).toContain('Did you mean "base"?')
    expect(routes.refusal('/v1/base/sepola/ListWallets').message).toContain(
      'Did you mean "sepolia"?',
    )
    expect(routes.refusal('/v1/solana/ListWallets').message).toContain('There are admin, ')
  })

  test('shows at most the beginning of a long name', () => {
    expect(routes.refusal(`/v1/${'x'.repeat(8_000)}/ListWallets`).message.length).toBeLessThan(300)
  })
})
