import { describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'

const service = await startTestApp()
const tenant = await service.createTenant()
const { organization_id } = tenant

const create = (fields: object) =>
  service.call(tenant.admin, 'admin/CreateCredential', { organization_id, ...fields })
const list = (fields: object = {}) =>
  service.call(tenant.admin, 'admin/ListCredentials', {
    organization_id,
    page_size: 100,
    ...fields,
  })

describe('CreateCredential', () => {
  it('answers both halves of a pair that works', async () => {
    const { status, json } = await create({ name: 'ci', role: 'ROLE_MEMBER' })
    expect(status).toBe(200)
    const { api_key, api_secret, credential_id, create_time, ...rest } = json.credential
    expect(credential_id).toMatch(/^[0-9a-f-]{36}$/)
    expect(rest).toEqual({
      ...{ organization_id, role: 'ROLE_MEMBER', name: 'ci', expire_time: null },
      ...{ scopes: ['*'], allowed_client_networks: ['0.0.0.0/0', '::/0'] },
    })
    expect(create_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const used = await service.call({ api_key, api_secret }, 'admin/ListRateLimits', {
      organization_id,
    })
    expect(used.status).toBe(200)
  })

  it('makes a member by default', async () => {
    expect((await create({})).json.credential.role).toBe('ROLE_MEMBER')
    const { json } = await create({ role: 'ROLE_ADMIN' })
    const listed = await service.call(json.credential, 'admin/ListOrganizations')
    expect(listed.status).toBe(200)
  })

  it('refuses a role that does not exist', async () => {
    const { status, json } = await create({ role: 'ROLE_ROOT' })
    expect([status, json.errors[0].field, json.errors[0].reason]).toEqual([
      400,
      'role',
      'NOT_ALLOWED',
    ])
  })

  it('answers 404 for an organization that does not exist', async () => {
    for (const id of ['01900000-0000-7000-8000-000000000000', 'nonsense', "'"]) {
      const { status, json } = await create({ organization_id: id })
      expect([status, json.reason]).toEqual([404, 'ORGANIZATION_NOT_FOUND'])
    }
  })

  it('never makes the same key or secret twice', async () => {
    const made = await Promise.all(Array.from({ length: 50 }, () => create({})))
    const texts = made.flatMap(({ json }) => [json.credential.api_key, json.credential.api_secret])
    expect(new Set(texts).size).toBe(100)
    for (const text of texts) expect(text).toMatch(/^pl[ks]_[\w-]{24,}$/)
  })
})

describe('ListCredentials', () => {
  it('shows the credentials in the order of their creation, without secrets and whole keys', async () => {
    const { credential } = (await create({ name: 'listed' })).json
    const { status, json, text } = await list()
    expect(status).toBe(200)
    expect(text).not.toContain('api_secret')
    expect(text).not.toContain(credential.api_secret)
    expect(text).not.toContain(credential.api_key)
    const { api_secret: _, api_key, ...shown } = credential
    const api_key_hint = `${api_key.slice(0, 8)}…`
    expect(json.credentials.at(-1)).toEqual({
      ...{ ...shown, api_key_hint, last_used_time: null },
      ...{ last_used_address: null, successor_credential_id: null },
    })
    const times = json.credentials.map(({ create_time }: { create_time: string }) => create_time)
    expect(times).toEqual(times.toSorted())
  })

  it('shows when a credential was last used, at the latest after the service stopped', async () => {
    const { credential } = (await create({ name: 'used' })).json
    const begun = Date.now()
    const short = await startTestApp({ beside: service })
    const used = await short.call(credential, 'admin/ListRateLimits', { organization_id })
    expect(used.status).toBe(200)
    await short.stop()
    const { json } = await list()
    const { last_used_time } = json.credentials.find(
      ({ name }: { name: string }) => name === 'used',
    )
    expect(Date.parse(last_used_time)).toBeGreaterThanOrEqual(begun)
    expect(Date.parse(last_used_time)).toBeLessThanOrEqual(Date.now())
  })

  it('lists the credentials of the named organization only', async () => {
    const other = await service.createTenant()
    const { json } = await list({ organization_id: other.organization_id })
    expect(json.credentials).toHaveLength(2)
    const ids = json.credentials.map((row: { organization_id: string }) => row.organization_id)
    expect(new Set(ids)).toEqual(new Set([other.organization_id]))
  })
})
