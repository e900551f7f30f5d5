import { describe, expect, it } from 'vitest'
import { exceeded, type Grant, grantOf, presentLimits, readLimits } from './grants.ts'
import { principalFrom } from './principal.ts'

const free: Grant = {
  role: 'ROLE_MEMBER',
  scopes: null,
  allowed_client_networks: null,
  expire_time: null,
}
const fieldsOf = (held: Partial<Grant>, wanted: Partial<Grant>) =>
  exceeded({ ...free, ...held }, { ...free, ...wanted }).map(({ field }) => field)
const now = Date.parse('2026-11-16T00:00:00Z')
const day = (number: number) => new Date(now + number * 86_400_000)

describe('a grant', () => {
  it.each<[string, Partial<Grant>, Partial<Grant>, string[]]>([
    ['the same', {}, {}, []],
    ['a narrower role', {}, { role: 'ROLE_READER' }, []],
    ['a wider role', {}, { role: 'ROLE_OWNER' }, ['role']],
    ['scopes for all', {}, { scopes: ['c:read'] }, []],
    ['all scopes', { scopes: ['c:read'] }, {}, ['scopes']],
    ['a scope less', { scopes: ['c:write'] }, { scopes: ['c:read'] }, []],
    ['a scope more', { scopes: ['c:read'] }, { scopes: ['c:read', 'c:write'] }, ['scopes']],
    ['networks within', nets('10.0.0.0/8'), nets('10.1.0.0/16', '10.2.3.4'), []],
    ['a wider network', nets('10.1.0.0/16'), nets('10.0.0.0/8'), ['allowed_client_networks']],
    ['another network', nets('10.0.0.0/8'), nets('11.0.0.0/8'), ['allowed_client_networks']],
    ['the other family', nets('0.0.0.0/0'), nets('2001:db8::/32'), ['allowed_client_networks']],
    ['an IPv6 network within', nets('2001:db8::/32'), nets('2001:db8:1::/48'), []],
    ['a shorter life', { expire_time: day(2) }, { expire_time: day(1) }, []],
    ['a longer life', { expire_time: day(1) }, { expire_time: day(2) }, ['expire_time']],
    ['no end', { expire_time: day(1) }, {}, ['expire_time']],
  ])('of %s', (_what, held, wanted, fields) => {
    expect(fieldsOf(held, wanted)).toEqual(fields)
  })

  it('everywhere is not within one family', () => {
    expect(fieldsOf(nets('0.0.0.0/0'), {})).toEqual(['allowed_client_networks'])
  })
})

function nets(...allowed_client_networks: string[]): Partial<Grant> {
  return { allowed_client_networks }
}

describe('restrictions in a request', () => {
  const none = { scopes: null, allowed_client_networks: null, expire_time: null }
  const read = (request: Parameters<typeof readLimits>[0]) => readLimits(request, none, now)

  it('that restrict nothing are stored as none', () => {
    expect(
      read({ scopes: ['c:read', '*'], allowed_client_networks: ['0.0.0.0/0', '::/0'] }),
    ).toEqual(none)
    expect(presentLimits(none)).toEqual({
      scopes: ['*'],
      allowed_client_networks: ['0.0.0.0/0', '::/0'],
      expire_time: null,
    })
  })

  it('are taken from the creator where they are left out', () => {
    const limits = {
      scopes: ['q:read'],
      allowed_client_networks: ['10.0.0.0/8'],
      expire_time: day(1),
    }
    expect(readLimits({}, limits, now)).toEqual(limits)
    const stored = {
      credential_id: 'c',
      organization_id: 'o',
      role: 'ROLE_OWNER' as const,
      ...limits,
    }
    expect(grantOf(principalFrom(stored))).toEqual({ role: 'ROLE_OWNER', ...limits })
  })

  it.each([['10.0.0.0/33'], ['10.0.0'], ['::ffff:10.0.0.1/128'], ['fe80::1%eth0'], ['x']])(
    'refuse %s as a network, by its place',
    (network) => {
      expect(() => read({ allowed_client_networks: ['10.0.0.0/8', network] })).toThrow(
        'allowed_client_networks[1]',
      )
    },
  )

  it('refuse a time that is over, and one that does not exist', () => {
    expect(() => read({ expire_time: '2026-11-15T00:00:00Z' })).toThrow('expire_time')
    expect(() => read({ expire_time: '2026-13-40T00:00:00Z' })).toThrow('expire_time')
  })
})
