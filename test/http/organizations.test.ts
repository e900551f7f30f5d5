import { describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'

const service = await startTestApp()
const tenant = await service.createTenant()

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const create = (domain: string, name = 'Acme') =>
  service.call(tenant.admin, 'admin/CreateOrganization', { name, domain })
const find = (domain: unknown) =>
  service.call(tenant.admin, 'admin/GetOrganizationByDomain', { domain })

describe('CreateOrganization', () => {
  it('answers the record of an organization with a UUIDv7 and times in UTC with milliseconds', async () => {
    const begun = Date.now()
    const { status, json } = await create('acme-1')
    expect(status).toBe(200)
    expect(Object.keys(json)).toEqual(['organization'])
    const { organization_id, create_time, update_time, ...rest } = json.organization
    expect(rest).toEqual({ name: 'Acme', domain: 'acme-1', disable_time: null })
    expect(organization_id).toMatch(uuidv7)
    expect(create_time).toMatch(timestamp)
    expect(update_time).toBe(create_time)
    expect(Date.parse(create_time)).toBeGreaterThanOrEqual(begun)
    expect(Date.parse(create_time)).toBeLessThanOrEqual(Date.now())
  })

  it('refuses a domain that is taken', async () => {
    expect((await create('taken')).status).toBe(200)
    const { status, json } = await create('taken', 'Other')
    expect([status, json.code, json.reason]).toEqual([409, 'ALREADY_EXISTS', 'DOMAIN_TAKEN'])
    expect(json.errors).toMatchObject([{ field: 'domain' }])
  })

  it('gives a domain to exactly one of many that ask for it together', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => create('contested')))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([200, ...Array.from({ length: 19 }, () => 409)])
  })

  it('keeps every character of a name', async () => {
    for (const name of [
      'Ünïcødé 漢字 🏛️',
      "Robert'); drop table--",
      '  ',
      '\u202e',
      'x'.repeat(50),
    ]) {
      const { status, json } = await create(
        `name-${Buffer.from(name).toString('hex').slice(0, 40)}`,
        name,
      )
      expect([status, json.organization?.name]).toEqual([200, name])
    }
  })
})

describe('GetOrganizationByDomain', () => {
  it('finds the organization', async () => {
    const { json: made } = await create('findable')
    expect((await find('findable')).json).toEqual(made)
  })

  it('answers 404 for an unknown domain', async () => {
    const { status, json } = await find('unknown')
    expect([status, json.code, json.reason]).toEqual([404, 'NOT_FOUND', 'ORGANIZATION_NOT_FOUND'])
  })

  it.each(['a', '0', 'a-b', 'a1-b2-c3', 'x'.repeat(50), `${'a-'.repeat(24)}ab`])(
    'takes the domain %s',
    async (domain) => {
      expect((await find(domain)).status).toBe(404)
    },
  )

  it.each([
    '',
    '-',
    'a-',
    '-a',
    'a--b',
    'A',
    'acme.org',
    'a b',
    'a_b',
    'ä',
    'a\n',
    'x'.repeat(51),
    'х', // Cyrillic
    null,
    7,
    ['acme'],
    { acme: 1 },
  ])('refuses the domain %j and names the field', async (domain) => {
    const { status, json } = await find(domain)
    expect([status, json.reason]).toEqual([400, 'INVALID_REQUEST'])
    expect(json.errors.map(({ field }: { field: string }) => field)).toContain('domain')
  })
})

describe('ListOrganizations', () => {
  it('lists all in the order of their creation', async () => {
    const names = ['order-1', 'order-2', 'order-3']
    for (const name of names) await create(name)
    const { status, json } = await service.call(tenant.admin, 'admin/ListOrganizations', {
      page_size: 100,
    })
    expect(status).toBe(200)
    const domains = json.organizations.map(({ domain }: { domain: string }) => domain)
    expect(domains[0]).toBe(tenant.domain)
    expect(domains.slice(-3)).toEqual(names)
    expect(json.pagination).toEqual({ next_page_token: '' })
  })
})
