import { describe, expect, it } from 'vitest'
import {
  type Answer,
  shiftedClock,
  startTestApp,
  type Tenant,
  type TestApp,
} from '../helpers/app.ts'
import { waitFor } from '../helpers/wait-for.ts'

const clock = shiftedClock()
const service = await startTestApp({ clock })
const root = await service.createTenant()

const unlimited = {
  per_second_limit: -1,
  per_hour_limit: -1,
  per_day_limit: -1,
  per_month_limit: -1,
}

const setLimit = async (tenant: Tenant, chain: string, limits: object) => {
  const { organization_id } = tenant
  const { status } = await service.call(root.admin, 'admin/SetRateLimit', {
    organization_id,
    chain,
    ...unlimited,
    ...limits,
  })
  expect(status).toBe(200)
}

/** A tenant whose limits hold from its first call on. */
const limited = async (chain: string, limits: object, rest: object = {}) => {
  const tenant = await service.createTenant()
  await setLimit(tenant, '*', rest)
  await setLimit(tenant, chain, limits)
  return tenant
}

const block = { block_number: 1 }
const query = (tenant: Tenant, of: TestApp = service) => of.call(tenant.member, 'q/GetBlock', block)
const administer = ({ member, organization_id }: Tenant, of: TestApp = service) =>
  of.call(member, 'admin/ListRateLimits', { organization_id })

const admitted = (answers: Answer[]) => answers.filter(({ status }) => status !== 429).length
const many = (count: number, ask: () => Promise<Answer>) =>
  Promise.all(Array.from({ length: count }, ask))

describe('an exceeded rate limit', () => {
  it('answers 429 with a problem body, Retry-After, RateLimit and RateLimit-Policy', async () => {
    const tenant = await limited('q', { per_hour_limit: 2 })
    await query(tenant)
    await query(tenant)
    const { status, headers, json } = await query(tenant)
    expect(status).toBe(429)
    expect(headers['content-type']).toBe('application/problem+json')
    expect(json).toMatchObject({
      type: '/docs/errors/RATE_LIMITED',
      status: 429,
      code: 'RESOURCE_EXHAUSTED',
      reason: 'RATE_LIMITED',
    })
    const toFullHour = 3_600 - (Math.floor(clock.now() / 1_000) % 3_600)
    const wait = Number(headers['retry-after'])
    expect(Math.abs(wait - toFullHour)).toBeLessThanOrEqual(2)
    expect(headers['ratelimit-policy']).toBe('"hour";q=2;w=3600')
    expect(headers.ratelimit).toMatch(/^"hour";r=0;t=\d+$/)
  })

  it('is announced by the headers of the answers before it', async () => {
    const tenant = await limited('admin', { per_hour_limit: 3, per_day_limit: 50 })
    const remaining = []
    for (let call = 0; call < 3; call++) {
      const { status, headers } = await administer(tenant)
      expect(status).toBe(200)
      expect(headers['ratelimit-policy']).toBe('"hour";q=3;w=3600, "day";q=50;w=86400')
      expect(headers['retry-after']).toBeUndefined()
      remaining.push(/r=(\d+)/.exec(String(headers.ratelimit))?.[1])
    }
    expect(remaining).toEqual(['2', '1', '0'])
  })

  it('admits exactly the limit when many calls come together', async () => {
    for (const limit of [1, 7, 40]) {
      const tenant = await limited('q', { per_day_limit: limit })
      expect(admitted(await many(60, () => query(tenant)))).toBe(limit)
    }
  })

  it('is over after the second that Retry-After names', async () => {
    const tenant = await limited('q', { per_second_limit: 5 })
    const answers = await many(12, () => query(tenant))
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.headers['retry-after']).toBe('1')
    clock.shift(1_000)
    expect((await query(tenant)).status).not.toBe(429)
  })

  it('is over in the next calendar window', async () => {
    const later = shiftedClock()
    const other = await startTestApp({ beside: service, clock: later })
    for (const window of ['per_hour_limit', 'per_day_limit', 'per_month_limit']) {
      const tenant = await limited('q', { [window]: 1 })
      await query(tenant, other)
      const { status, headers } = await query(tenant, other)
      expect([window, status]).toEqual([window, 429])
      const wait = Number(headers['retry-after']) * 1_000
      later.shift(wait - 5_000)
      expect((await query(tenant, other)).status).toBe(429)
      later.shift(5_000)
      expect((await query(tenant, other)).status).not.toBe(429)
    }
  })

  it('is shared by all keys of the organization', async () => {
    const tenant = await limited('q', { per_day_limit: 4 })
    const second = await service.createPair(tenant.organization_id, 'ROLE_MEMBER')
    const answers = []
    for (let call = 0; call < 4; call++)
      answers.push(await query(tenant), await service.call(second, 'q/GetBlock', block))
    expect(admitted(answers)).toBe(4)
  })

  it('is counted for each organization apart', async () => {
    const [one, two] = [
      await limited('q', { per_day_limit: 2 }),
      await limited('q', { per_day_limit: 2 }),
    ]
    expect(admitted(await many(5, () => query(one)))).toBe(2)
    expect(admitted(await many(5, () => query(two)))).toBe(2)
  })

  it('is counted for each chain apart', async () => {
    const tenant = await limited('q', { per_day_limit: 0 })
    expect((await query(tenant)).status).toBe(403)
    const wallets = await service.call(tenant.member, 'c/ListWallets')
    expect(wallets.status).not.toBe(429)
    expect((await administer(tenant)).status).toBe(200)
  })

  it('counts administration operations under the name admin', async () => {
    const tenant = await limited('admin', { per_day_limit: 2 })
    expect(admitted(await many(5, () => administer(tenant)))).toBe(2)
    expect((await query(tenant)).status).not.toBe(429)
  })

  it('does not count unauthenticated calls', async () => {
    const tenant = await limited('q', { per_day_limit: 1 })
    const guess = { ...tenant.member, api_secret: 'guess' }
    for (let call = 0; call < 5; call++)
      expect((await service.call(guess, 'q/GetBlock', block)).status).toBe(401)
    expect((await query(tenant)).status).not.toBe(429)
  })
})

describe('the limits that apply', () => {
  it('are those of the record * on a chain without a record', async () => {
    const tenant = await limited('q', {}, { per_day_limit: 3 })
    const wallets = () => service.call(tenant.member, 'c/ListWallets')
    expect(admitted(await many(6, wallets))).toBe(3)
    expect(admitted(await many(6, () => query(tenant)))).toBe(6)
  })

  it('block with 0 in any window and do not limit with -1', async () => {
    for (const window of Object.keys(unlimited)) {
      const tenant = await limited('q', { [window]: 0 })
      const { status, headers } = await query(tenant)
      expect([window, status]).toEqual([window, 403])
      expect(headers['retry-after']).toBeUndefined()
    }
    const free = await limited('q', {})
    const answers = await many(150, () => query(free))
    expect(admitted(answers)).toBe(150)
    expect(answers[0]?.headers['ratelimit-policy']).toBeUndefined()
  })

  it('are the configured defaults when all records are deleted', async () => {
    const config = { limits: { per_day_limit: 6, per_second_limit: -1 } }
    const strict = await startTestApp({ beside: service, config })
    const tenant = await limited('q', { per_day_limit: 0 })
    expect((await query(tenant, strict)).status).toBe(403)
    const { organization_id } = tenant
    await service.call(root.admin, 'admin/DeleteRateLimit', { organization_id })
    await waitFor('the deletion is known', async () => (await query(tenant, strict)).status !== 403)
    const { headers } = await query(tenant, strict)
    expect(headers['ratelimit-policy']).toContain('"day";q=6;w=86400')
    expect(admitted(await many(10, () => query(tenant, strict)))).toBe(4)
  })
})

describe('a changed rate limit', () => {
  it('takes effect in a second service within a second', async () => {
    const twin = await startTestApp({ beside: service, clock })
    const tenant = await limited('q', {})
    expect((await query(tenant, twin)).status).not.toBe(429)
    await setLimit(tenant, 'q', { per_day_limit: 0 })
    const known = async () => (await query(tenant, twin)).status === 403
    await waitFor('the twin blocks', known, { timeoutMs: 10_000 })
    await setLimit(tenant, 'q', {})
    const free = async () => !(await known())
    await waitFor('the twin admits again', free, { timeoutMs: 10_000 })
  })

  it('survives a restart together with what was used of the hour', async () => {
    const tenant = await limited('q', { per_hour_limit: 5 })
    const first = await startTestApp({ beside: service, clock })
    expect(admitted(await many(3, () => query(tenant, first)))).toBe(3)
    await first.stop()
    const second = await startTestApp({ beside: service, clock })
    expect(admitted(await many(6, () => query(tenant, second)))).toBe(2)
  })
})
