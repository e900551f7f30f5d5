import { describe, expect, it } from 'vitest'
import { startTestApp, type Tenant } from '../helpers/app.ts'

const service = await startTestApp()
const root = await service.createTenant()

const limits = (limit: number) => ({
  per_second_limit: limit,
  per_hour_limit: limit + 1,
  per_day_limit: limit + 2,
  per_month_limit: limit + 3,
})

const fresh = async () => {
  const tenant = await service.createTenant()
  await as(tenant, 'DeleteRateLimit')
  return tenant
}

const as = (
  { organization_id }: Pick<Tenant, 'organization_id'>,
  operation: string,
  fields: object = {},
) => service.call(root.admin, `admin/${operation}`, { organization_id, ...fields })

const set = (tenant: Tenant, chain: string | undefined, limit = 5) =>
  as(tenant, 'SetRateLimit', { ...(chain !== undefined && { chain }), ...limits(limit) })

const chains = async (tenant: Tenant, fields = {}) => {
  const { json } = await as(tenant, 'ListRateLimits', fields)
  return json.data.map((row: { ratelimit_info: { chain: string } }) => row.ratelimit_info.chain)
}

const notFound = [404, 'NOT_FOUND', 'RATE_LIMIT_NOT_FOUND']
const outcome = ({ status, json }: Awaited<ReturnType<typeof as>>) => [
  status,
  json.code,
  json.reason,
]

describe('SetRateLimit', () => {
  it('refuses a chain that nothing counts, and names the one that was meant', async () => {
    const tenant = await fresh()
    const { status, json } = await set(tenant, 'admim')
    expect([status, json.errors]).toEqual([
      400,
      [{ field: 'chain', reason: 'NOT_ALLOWED', detail: 'No such chain. Did you mean admin?' }],
    ])
    const other = await set(tenant, 'eth')
    expect(other.json.errors[0].detail).toContain('Must be one of *, admin, q, t, s, p, c')
  })

  it('creates a record and answers it as the specification has it', async () => {
    const tenant = await fresh()
    const { status, json } = await set(tenant, 'c')
    const { create_time, update_time, ...rest } = json
    expect(status).toBe(200)
    expect(rest).toEqual({
      organization_id: tenant.organization_id,
      ratelimit_info: { chain: 'c', ...limits(5) },
    })
    expect(create_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(update_time).toBe(create_time)
  })

  it('replaces a record and keeps the time of its creation', async () => {
    const tenant = await fresh()
    const first = (await set(tenant, 'c')).json
    const second = (await set(tenant, 'c', 9)).json
    expect(second.create_time).toBe(first.create_time)
    expect(second.update_time >= first.update_time).toBe(true)
    expect(second.ratelimit_info.per_second_limit).toBe(9)
    expect(await chains(tenant)).toEqual(['c'])
  })

  it('sets the default of the organization without a chain', async () => {
    const tenant = await fresh()
    expect((await set(tenant, undefined)).json.ratelimit_info.chain).toBe('*')
  })

  it('takes every limit from -1 to the largest safe integer and nothing else', async () => {
    const tenant = await fresh()
    const ask = (per_day_limit: unknown) =>
      as(tenant, 'SetRateLimit', { chain: 'c', ...limits(1), per_day_limit })
    for (const good of [-1, 0, 1, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      const { status, json } = await ask(good)
      expect([status, json.ratelimit_info.per_day_limit]).toEqual([200, good])
    }
    for (const bad of [-2, 1.5, Number.MAX_SAFE_INTEGER + 1, '5', null, true, [1]]) {
      const { status, json } = await ask(bad)
      expect([status, json.errors[0].field]).toEqual([400, 'per_day_limit'])
    }
  })

  it('needs all four windows and names those that are missing', async () => {
    const tenant = await fresh()
    const { status, json } = await as(tenant, 'SetRateLimit', { per_hour_limit: 1 })
    expect(status).toBe(400)
    expect(json.errors.map(({ field }: { field: string }) => field)).toEqual([
      'per_second_limit',
      'per_day_limit',
      'per_month_limit',
    ])
  })
})

describe('GetRateLimit', () => {
  it('reads the record of a chain', async () => {
    const tenant = await fresh()
    const made = (await set(tenant, 'c')).json
    expect((await as(tenant, 'GetRateLimit', { chain: 'c' })).json).toEqual(made)
  })

  it('reads the record * without a chain, and no other', async () => {
    const tenant = await fresh()
    await set(tenant, 'c')
    expect(outcome(await as(tenant, 'GetRateLimit'))).toEqual(notFound)
    const made = (await set(tenant, '*', 8)).json
    expect((await as(tenant, 'GetRateLimit')).json).toEqual(made)
    expect((await as(tenant, 'GetRateLimit', { chain: '*' })).json).toEqual(made)
  })

  it('does not answer with the default for a chain without a record', async () => {
    const tenant = await fresh()
    await set(tenant, '*')
    expect(outcome(await as(tenant, 'GetRateLimit', { chain: 'c' }))).toEqual(notFound)
  })
})

describe('ListRateLimits', () => {
  it('lists all records, or those of one chain', async () => {
    const tenant = await fresh()
    expect(await chains(tenant)).toEqual([])
    for (const chain of ['q', '*', 'admin', 'c']) await set(tenant, chain)
    expect((await chains(tenant)).sort()).toEqual(['*', 'admin', 'c', 'q'])
    expect(await chains(tenant, { chain: 'c' })).toEqual(['c'])
    expect(await chains(tenant, { chain: '*' })).toEqual(['*'])
    expect(await chains(tenant, { chain: 'unknown' })).toEqual([])
  })

  it('shows nothing of another organization', async () => {
    const [one, two] = [await fresh(), await fresh()]
    await set(one, 'c')
    expect(await chains(two)).toEqual([])
  })
})

describe('DeleteRateLimit', () => {
  it('deletes the record of a chain and leaves the others', async () => {
    const tenant = await fresh()
    for (const chain of ['c', 'q', '*']) await set(tenant, chain)
    const { status, text } = await as(tenant, 'DeleteRateLimit', { chain: 'c' })
    expect([status, text]).toEqual([200, '{}'])
    expect((await chains(tenant)).sort()).toEqual(['*', 'q'])
  })

  it('deletes only the default on request', async () => {
    const tenant = await fresh()
    for (const chain of ['c', '*']) await set(tenant, chain)
    expect((await as(tenant, 'DeleteRateLimit', { chain: '*' })).status).toBe(200)
    expect(await chains(tenant)).toEqual(['c'])
  })

  it('deletes every record of the organization without a chain, and of no other', async () => {
    const [tenant, other] = [await fresh(), await fresh()]
    for (const chain of ['c', 'q', '*']) await set(tenant, chain)
    await set(other, 'c')
    expect((await as(tenant, 'DeleteRateLimit')).status).toBe(200)
    expect(await chains(tenant)).toEqual([])
    expect(await chains(other)).toEqual(['c'])
  })

  it('answers 404 when there is nothing to delete', async () => {
    const tenant = await fresh()
    expect(outcome(await as(tenant, 'DeleteRateLimit'))).toEqual(notFound)
    await set(tenant, 'c')
    expect(outcome(await as(tenant, 'DeleteRateLimit', { chain: 'q' }))).toEqual(notFound)
    expect(outcome(await as(tenant, 'DeleteRateLimit', { chain: '*' }))).toEqual(notFound)
  })
})

describe('every operation on rate limits', () => {
  it.each(['GetRateLimit', 'ListRateLimits', 'DeleteRateLimit', 'SetRateLimit'])(
    '%s answers 404 for an organization that does not exist',
    async (operation) => {
      for (const organization_id of ['01900000-0000-7000-8000-000000000000', 'x', 'é', '../..']) {
        const fields = operation === 'SetRateLimit' ? limits(1) : {}
        const { status, json } = await as({ organization_id }, operation, fields)
        expect([status, json.reason]).toEqual([404, 'ORGANIZATION_NOT_FOUND'])
      }
    },
  )

  it.each(['GetRateLimit', 'ListRateLimits', 'DeleteRateLimit', 'SetRateLimit'])(
    '%s refuses a chain name that no chain can have',
    async (operation) => {
      for (const chain of ['', 'C', '**', 'a b', 'a--b', 'x'.repeat(51), '%', 5, null]) {
        const fields = operation === 'SetRateLimit' ? limits(1) : {}
        const { status, json } = await as(root, operation, { ...fields, chain })
        expect([chain, status, json.errors?.[0].field]).toEqual([chain, 400, 'chain'])
      }
    },
  )
})

describe('ListEffectiveRateLimits', () => {
  const effective = async (tenant: Tenant) =>
    (await as(tenant, 'ListEffectiveRateLimits')).json.effective_rate_limits

  it('says which record applies, or that the defaults do', async () => {
    const tenant = await fresh()
    expect(await effective(tenant)).toMatchObject([
      { chain: 'admin', source: 'RATE_LIMIT_SOURCE_DEFAULT', per_hour_limit: 100_000 },
    ])
    await set(tenant, '*', 7)
    expect(await effective(tenant)).toMatchObject([
      { source: 'RATE_LIMIT_SOURCE_ORGANIZATION', blocked: false, ...limits(7) },
    ])
    await set(tenant, 'admin', 0)
    expect(await effective(tenant)).toMatchObject([
      { source: 'RATE_LIMIT_SOURCE_CHAIN', blocked: true, ...limits(0) },
    ])
    expect(outcome(await as(tenant, 'ListEffectiveRateLimits', { chain: 'nope' }))[0]).toBe(400)
  })
})

it('an organization with a limit of 0 is blocked, without Retry-After', async () => {
  const tenant = await fresh()
  await as(tenant, 'SetRateLimit', { chain: 'admin', ...limits(-1), per_day_limit: 0 })
  const { status, json, headers } = await service.call(tenant.member, 'admin/ListRateLimits', {
    organization_id: tenant.organization_id,
  })
  expect([status, json.reason]).toEqual([403, 'RATE_LIMIT_BLOCKED'])
  expect(headers['retry-after']).toBeUndefined()
})
