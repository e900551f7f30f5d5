import { describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'
import type { Pair } from '../helpers/signer.ts'

const service = await startTestApp()
const root = await service.createTenant()
const other = await service.createTenant()
const { organization_id } = root
for (let made = 0; made < 23; made++)
  await service.call(root.admin, 'admin/CreateOrganization', { name: 'n', domain: `page-${made}` })
for (let made = 0; made < 5; made++) await service.createPair(organization_id, 'ROLE_MEMBER')
for (let made = 0; made < 5; made++) await service.createPair(other.organization_id, 'ROLE_MEMBER')

const organizations = (fields: object = {}, pair: Pair = root.admin) =>
  service.call(pair, 'admin/ListOrganizations', fields)
const credentials = (fields: object = {}, pair: Pair = root.admin) =>
  service.call(pair, 'admin/ListCredentials', { organization_id, page_size: 2, ...fields })

const tokenOf = async (answer: ReturnType<typeof organizations>): Promise<string> =>
  (await answer).json.pagination.next_page_token

const refusal = async (answer: ReturnType<typeof organizations>) => {
  const { status, json } = await answer
  return [status, json.code, json.reason, json.errors?.[0].field]
}
const refused = [400, 'INVALID_ARGUMENT', 'INVALID_PAGE_TOKEN', 'page_token']

/** Follows the pages to the end; calls back between them. */
const follow = async (page_size: number, between: (page: number) => Promise<unknown>) => {
  const seen: string[] = []
  let page_token = ''
  for (let page = 0; page === 0 || page_token !== ''; page++) {
    const { json } = await organizations({ page_size, ...(page_token && { page_token }) })
    seen.push(...json.organizations.map(({ domain }: { domain: string }) => domain))
    page_token = json.pagination.next_page_token
    await between(page)
  }
  return seen
}

describe('a page', () => {
  it('has ten items by default', async () => {
    expect((await organizations()).json.organizations).toHaveLength(10)
    expect((await organizations({ page_size: 1 })).json.organizations).toHaveLength(1)
  })

  it.each([0, -1, 101, 1.5, '10', null, 2 ** 53])('cannot have the size %j', async (page_size) => {
    const { status, json } = await organizations({ page_size })
    expect([status, json.errors[0].field]).toEqual([400, 'page_size'])
  })

  it('leads to the next one until the token is empty, with no item twice and none missed', async () => {
    const whole = (await organizations({ page_size: 100 })).json.organizations.map(
      ({ domain }: { domain: string }) => domain,
    )
    expect(whole).toHaveLength(25)
    for (const size of [1, 2, 5, 7, 24, 25, 26])
      expect(await follow(size, async () => {})).toEqual(whole)
  })

  it('misses nothing and repeats nothing while new items arrive', async () => {
    const before = (await organizations({ page_size: 100 })).json.organizations.map(
      ({ domain }: { domain: string }) => domain,
    )
    const arrived: string[] = []
    const seen = await follow(3, async (page) => {
      if (arrived.length >= 8) return
      const domain = `late-${page}`
      arrived.push(domain)
      await service.call(root.admin, 'admin/CreateOrganization', { name: 'n', domain })
    })
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen).toEqual([...before, ...arrived])
  })

  it('may have another size than the one before', async () => {
    const page_token = await tokenOf(organizations({ page_size: 3 }))
    const { json } = await organizations({ page_size: 4, page_token })
    expect(json.organizations).toHaveLength(4)
  })

  it('can be read again with the same token', async () => {
    const page_token = await tokenOf(organizations())
    const first = await organizations({ page_token })
    const second = await organizations({ page_token })
    expect(second.json.organizations).toEqual(first.json.organizations)
  })

  it('is the first one when the token is empty', async () => {
    const { json } = await organizations({ page_token: '' })
    expect(json.organizations).toEqual((await organizations()).json.organizations)
  })
})

describe('a page token', () => {
  it('of another operation is refused', async () => {
    const page_token = await tokenOf(credentials())
    expect(await refusal(organizations({ page_token }))).toEqual(refused)
  })

  it('of other filters is refused', async () => {
    const page_token = await tokenOf(credentials())
    expect(
      await refusal(credentials({ page_token, organization_id: other.organization_id })),
    ).toEqual(refused)
    expect((await credentials({ page_token })).status).toBe(200)
  })

  it('of another organization is refused', async () => {
    const page_token = await tokenOf(organizations())
    expect(await refusal(organizations({ page_token }, other.admin))).toEqual(refused)
    expect((await organizations({ page_token })).status).toBe(200)
  })

  it('is refused with any character changed, removed or added', async () => {
    const token = await tokenOf(organizations())
    const damaged = [...token].map((char, at) => {
      const changed = char === 'A' ? 'B' : 'A'
      return token.slice(0, at) + changed + token.slice(at + 1)
    })
    for (let at = 0; at < token.length; at += 7)
      damaged.push(token.slice(0, at) + token.slice(at + 1))
    damaged.push(...['A', '=', ' ', '!', '\n', '.', '/x'].map((char) => token + char))
    damaged.push(` ${token}`, `!${token}`, `${token.slice(0, 9)} ${token.slice(9)}`)
    const accepted: string[] = []
    for (const page_token of damaged) {
      const found = await refusal(organizations({ page_token }))
      if (found.join() !== refused.join()) accepted.push(page_token)
    }
    expect({ token, accepted }).toEqual({ token, accepted: [] })
  })

  it.each(['1', 'null', 'eyJhIjoxfQ', 'x'.repeat(2_000), 'AQAAAAA', '..', '%00'])(
    'that the service did not issue (%s) is refused',
    async (page_token) => {
      expect(await refusal(organizations({ page_token }))).toEqual(refused)
    },
  )

  it('reveals nothing about the position', async () => {
    const token = await tokenOf(credentials())
    const bytes = Buffer.from(token, 'base64url').toString('latin1')
    expect(bytes).not.toMatch(/\d{4}-\d\d/)
    expect(token).not.toBe(await tokenOf(credentials()))
  })

  it('is valid in another process of the same installation', async () => {
    const page_token = await tokenOf(organizations())
    const twin = await startTestApp({ beside: service })
    const { json } = await twin.call(root.admin, 'admin/ListOrganizations', { page_token })
    expect(json.organizations).toEqual((await organizations({ page_token })).json.organizations)
  })
})
