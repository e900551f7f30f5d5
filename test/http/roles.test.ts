import { describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'
import { operations, validRequest } from './sample-requests.ts'

const service = await startTestApp()
const twin = await startTestApp({ beside: service })
const own = await service.createTenant()
const other = await service.createTenant()

const memberMay = [
  'CreateStreamToken',
  'DeleteCredential',
  'GetCurrentCredential',
  'GetOrganizationByDomain',
  'GetRateLimit',
  'GetUsage',
  'ListAuditEvents',
  'ListChains',
  'ListEffectiveRateLimits',
  'ListMethodUsage',
  'ListRateLimits',
  'ListSearchResults',
  'ListWebSocketClients',
  'RotateCredential',
]
// What the request names does not exist.
const thereIsNone = [
  'admin/DeleteCredential',
  'admin/GetOrganizationDeletion',
  'admin/RevokeCredential',
  'admin/UpdateCredential',
]
const administration = operations.filter(([, { service: tag }]) => tag === 'admin')
const forMembers = administration.filter(([, { name }]) => memberMay.includes(name))
const forAdmins = administration.filter(([, { name }]) => !memberMay.includes(name))
const others = operations.filter(([, { service: tag }]) => tag !== 'admin')

const requestFor = (name: string, { organization_id, domain }: typeof own) => {
  const entry = administration.find(([path]) => path === name)![1]
  const request = validRequest(entry)
  if ('organization_id' in request) request.organization_id = organization_id
  if ('domain' in request && name !== 'admin/CreateOrganization') request.domain = domain
  return request
}

describe('a member', () => {
  it('may call some administration operations and no other', () => {
    expect(forMembers.map(([, { name }]) => name).sort()).toEqual(memberMay)
    expect(forAdmins).not.toEqual([])
  })

  it.each(forAdmins)('may not call %s', async (name) => {
    const bodies = [requestFor(name, own), requestFor(name, other), {}, { nonsense: 1 }, undefined]
    for (const body of bodies) {
      const { status, json } = await service.call(own.member, name, body)
      expect([status, json.code, json.reason]).toEqual([
        403,
        'PERMISSION_DENIED',
        'PERMISSION_DENIED',
      ])
      expect(json.errors).toBeUndefined()
    }
  })

  it('changed nothing by trying', async () => {
    const { json } = await service.call(own.admin, 'admin/ListRateLimits', idOf(own))
    expect(json.data).toHaveLength(1)
    const { rows } = await service.database.pool.query('select count(*)::int from organization')
    expect(rows[0].count).toBe(2)
  })

  it.each(forMembers)('may call %s in its own organization', async (name) => {
    const { status } = await service.call(own.member, name, requestFor(name, own))
    // The sample credential does not exist; anything but a refusal of the caller will do.
    expect([200, 404, 501]).toContain(status)
  })

  it('reads its own organization and rate limits', async () => {
    const organization = await service.call(own.member, 'admin/GetOrganizationByDomain', {
      domain: own.domain,
    })
    expect(organization.json.organization.organization_id).toBe(own.organization_id)
    const limit = await service.call(own.member, 'admin/GetRateLimit', idOf(own))
    expect(limit.json.organization_id).toBe(own.organization_id)
    const limits = await service.call(own.member, 'admin/ListRateLimits', idOf(own))
    expect(limits.json.data).toEqual([limit.json])
  })

  it('may delete a credential of its own organization, an administrator’s too', async () => {
    const pair = await service.createPair(own.organization_id, 'ROLE_ADMIN')
    expect((await service.call(own.member, 'admin/DeleteCredential', pair)).status).toBe(200)
    expect((await service.call(pair, 'admin/ListOrganizations')).status).toBe(401)
  })

  it('may not delete a credential of another organization', async () => {
    const pair = other.member
    const answer = await service.call(own.member, 'admin/DeleteCredential', pair)
    expect([answer.status, answer.json.reason]).toEqual([404, 'CREDENTIAL_NOT_FOUND'])
    expect((await service.call(pair, 'admin/ListRateLimits', idOf(other))).status).toBe(200)
  })

  it.each(others)('is not refused by its role in %s', async (name, entry) => {
    const { status } = await service.call(own.member, name, validRequest(entry))
    expect([401, 403]).not.toContain(status)
  })
})

describe('an administrator', () => {
  it.each(administration)('may call %s for every organization', async (name) => {
    // Of a third organization: the loop deletes its rate limits among other things.
    const target = await service.createTenant()
    const { status, text } = await service.call(own.admin, name, requestFor(name, target))
    expect(thereIsNone.includes(name) ? [404] : [200, 501], text).toContain(status)
  })

  it('may delete the credential of any organization', async () => {
    const pair = await service.createPair(other.organization_id, 'ROLE_MEMBER')
    expect((await service.call(own.admin, 'admin/DeleteCredential', pair)).status).toBe(200)
  })
})

describe('a deleted credential', () => {
  it('stops working at once in every service on the database', async () => {
    const pair = await service.createPair(own.organization_id, 'ROLE_MEMBER')
    const use = async (of: typeof service) => {
      const { status, json } = await of.call(pair, 'admin/ListRateLimits', idOf(own))
      return status === 200 ? 'works' : json.reason
    }
    expect([await use(service), await use(twin)]).toEqual(['works', 'works'])
    expect((await service.call(pair, 'admin/DeleteCredential', pair)).status).toBe(200)
    expect([await use(twin), await use(service)]).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED'])
  })

  it('stops working in the middle of parallel calls without failing them otherwise', async () => {
    for (let round = 0; round < 5; round++) {
      const pair = await service.createPair(own.organization_id, 'ROLE_MEMBER')
      const calls = Array.from({ length: 60 }, (_, at) =>
        (at % 2 ? twin : service).call(pair, 'admin/ListRateLimits', idOf(own)),
      )
      const gone = service.call(own.admin, 'admin/DeleteCredential', pair)
      const statuses = (await Promise.all(calls)).map(({ status }) => status)
      expect((await gone).status).toBe(200)
      expect(statuses.filter((status) => status !== 200 && status !== 401)).toEqual([])
      expect((await twin.call(pair, 'admin/ListRateLimits', idOf(own))).status).toBe(401)
    }
  })

  it('is not deleted with a wrong secret, and only once', async () => {
    const pair = await service.createPair(own.organization_id, 'ROLE_MEMBER')
    const remove = async (api_secret: string) =>
      (await service.call(own.admin, 'admin/DeleteCredential', { ...pair, api_secret })).status
    expect(await remove(own.admin.api_secret)).toBe(404)
    expect(await remove(pair.api_secret)).toBe(200)
    expect(await remove(pair.api_secret)).toBe(404)
  })
})

function idOf({ organization_id }: { organization_id: string }) {
  return { organization_id }
}
