import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/contract/operations/catalogue.ts'
import { pathOf } from '../../src/contract/operations/catalogue.ts'
import { setOrganizationDisabled } from '../../src/storage/access/organizations.ts'
import { type Answer, startTestApp, type TestApp } from '../helpers/app.ts'
import { authHeaders, nextNonce, type Pair, signature } from '../helpers/signer.ts'
import { operations, validRequest } from './sample-requests.ts'

const service = await startTestApp()
const tenant = await service.createTenant()
const closed = await disabledTenant(service)
const deleted = await deletedPair(service)

type Request = { path: string; body: string; headers: Record<string, string | string[]> }

/** A correctly signed request; every attempt below spoils one thing of it. */
const signed = (entry: Entry, pair: Pair = tenant.member): Request => {
  const path = pathOf(entry.service, entry.name)
  const body = JSON.stringify(validRequest(entry))
  return {
    path,
    body,
    headers: { 'content-type': 'application/json', ...authHeaders(pair, { path, body }) },
  }
}

const send = ({ path, body, headers }: Request): Promise<Answer> =>
  service.send(path, { body, headers })

const withHeaders = (request: Request, headers: Request['headers']): Request => ({
  ...request,
  headers: { ...request.headers, ...headers },
})

const without = (request: Request, name: string): Request => {
  const { [name]: _, ...headers } = request.headers
  return { ...request, headers }
}

/** Signed over a text in which one part differs from what is sent. */
const signedOver = (request: Request, part: object): Request => {
  const nonce = String(request.headers['x-api-nonce'])
  const { path, body } = request
  const other = signature(tenant.member.api_secret, { path, body, nonce, ...part })
  return withHeaders(request, { 'x-api-signature': other })
}

const mac = (request: Request) => String(request.headers['x-api-signature'])

/** A right signature over a nonce of any form. */
const withNonce = (request: Request, nonce: string): Request =>
  withHeaders(signedOver(request, { nonce }), { 'x-api-nonce': nonce })

const unauthenticated: Record<string, (entry: Entry) => Request> = {
  'no headers at all': (entry) => ({
    ...signed(entry),
    headers: { 'content-type': 'application/json' },
  }),
  'no key': (entry) => without(signed(entry), 'x-api-key'),
  'no nonce': (entry) => without(signed(entry), 'x-api-nonce'),
  'no signature': (entry) => without(signed(entry), 'x-api-signature'),
  'an unknown key': (entry) => withHeaders(signed(entry), { 'x-api-key': `plk_${'A'.repeat(24)}` }),
  'a malformed key': (entry) => withHeaders(signed(entry), { 'x-api-key': "' or 1=1 --" }),
  'a key of 8 KiB': (entry) => withHeaders(signed(entry), { 'x-api-key': 'k'.repeat(8_192) }),
  'an empty key': (entry) => withHeaders(signed(entry), { 'x-api-key': '' }),
  'a deleted key': (entry) => signed(entry, deleted),
  'the key of a disabled organization': (entry) => signed(entry, closed),
  'the signature of another credential': (entry) =>
    withHeaders(signed(entry), { 'x-api-signature': mac(signed(entry, tenant.admin)) }),
  'the key of another credential': (entry) =>
    withHeaders(signed(entry), { 'x-api-key': tenant.admin.api_key }),
  'the secret as signature': (entry) =>
    withHeaders(signed(entry), { 'x-api-signature': tenant.member.api_secret }),
  'a signature over another body': (entry) => signedOver(signed(entry), { body: '{"a":1}' }),
  'a signature over no body': (entry) => signedOver(signed(entry), { body: '' }),
  'a signature over another path': (entry) =>
    signedOver(signed(entry), { path: '/v1/q/GetBlock2' }),
  'a signature over another method': (entry) => signedOver(signed(entry), { method: 'GET' }),
  'a signature over the method in lower case': (entry) =>
    signedOver(signed(entry), { method: 'post' }),
  'a signature over another nonce': (entry) => signedOver(signed(entry), { nonce: nextNonce() }),
  'a query that was not signed': (entry) => {
    const request = signed(entry)
    return { ...request, path: `${request.path}?a=1` }
  },
  'a query other than the signed one': (entry) => {
    const request = signed(entry)
    return {
      ...signedOver(request, { path: `${request.path}?a=1` }),
      path: `${request.path}?a=2`,
    }
  },
  'a truncated signature': (entry) => {
    const request = signed(entry)
    return withHeaders(request, { 'x-api-signature': mac(request).slice(0, 63) })
  },
  'half a signature': (entry) => {
    const request = signed(entry)
    return withHeaders(request, { 'x-api-signature': mac(request).slice(0, 32) })
  },
  'an empty signature': (entry) => withHeaders(signed(entry), { 'x-api-signature': '' }),
  'a signature in upper case': (entry) => {
    const request = signed(entry)
    return withHeaders(request, { 'x-api-signature': mac(request).toUpperCase() })
  },
  'a signature in base64': (entry) => {
    const request = signed(entry)
    const bytes = Buffer.from(mac(request), 'hex')
    return withHeaders(request, { 'x-api-signature': bytes.toString('base64') })
  },
  'a signature and something behind it': (entry) => {
    const request = signed(entry)
    return withHeaders(request, { 'x-api-signature': `${mac(request)}0` })
  },
  'the key twice': (entry) =>
    withHeaders(signed(entry), { 'x-api-key': [tenant.member.api_key, tenant.member.api_key] }),
  'the nonce twice': (entry) => {
    const request = signed(entry)
    const nonce = String(request.headers['x-api-nonce'])
    return withHeaders(request, { 'x-api-nonce': [nonce, nonce] })
  },
  'the signature twice': (entry) => {
    const request = signed(entry)
    return withHeaders(request, { 'x-api-signature': [mac(request), mac(request)] })
  },
  'an empty nonce': (entry) => withNonce(signed(entry), ''),
  'an old nonce and a wrong signature': (entry) =>
    withHeaders(signed(entry), { 'x-api-nonce': String(Date.now() - 3_600_000) }),
}

const skewed: Record<string, (entry: Entry) => Request> = {
  'a nonce of 12 digits': (entry) => withNonce(signed(entry), String(Date.now()).slice(0, 12)),
  'a nonce of 14 digits': (entry) => withNonce(signed(entry), `${Date.now()}0`),
  'a nonce of letters': (entry) => withNonce(signed(entry), 'now'),
  'a nonce of hex digits': (entry) => withNonce(signed(entry), '0x18bcfe5680'),
  'a negative nonce': (entry) => withNonce(signed(entry), `-${Date.now()}`),
  'a nonce with a fraction': (entry) => withNonce(signed(entry), `${Date.now()}.5`),
  'a nonce with an exponent': (entry) => withNonce(signed(entry), '1.7e12'),
  'a nonce too old': (entry) => withNonce(signed(entry), String(Date.now() - 301_000)),
  'a nonce too far in the future': (entry) =>
    withNonce(signed(entry), String(Date.now() + 330_000)),
  'a nonce of 13 zeros': (entry) => withNonce(signed(entry), '0'.repeat(13)),
  'a nonce of 19 nines': (entry) => withNonce(signed(entry), '9'.repeat(19)),
}

const sameBody = (answer: Answer) => ({
  status: answer.status,
  content_type: answer.headers['content-type'],
  ...answer.json,
  request_id: typeof answer.json?.request_id,
})

const reference = sameBody(
  await service.send('/v1/admin/GetRateLimit', {
    body: '{}',
    headers: { 'content-type': 'application/json' },
  }),
)

describe('an operation', () => {
  it('refuses with one body that says nothing about the key', () => {
    expect(reference).toMatchObject({
      status: 401,
      content_type: 'application/problem+json',
      code: 'UNAUTHENTICATED',
      reason: 'UNAUTHENTICATED',
      request_id: 'string',
    })
  })

  it('is attacked in more than 2,000 ways, each of which has to be refused', () => {
    const ways = Object.keys(unauthenticated).length + Object.keys(skewed).length
    expect(operations.length * ways).toBeGreaterThan(2_000)
  })

  it.each(operations)(
    '%s accepts no request that is not signed by a valid credential',
    async (_, entry) => {
      const names = Object.keys(unauthenticated)
      const answers = await Promise.all(names.map((name) => send(unauthenticated[name]!(entry))))
      expect(
        Object.fromEntries(answers.map((answer, at) => [names[at], sameBody(answer)])),
      ).toEqual(Object.fromEntries(names.map((name) => [name, reference])))
    },
  )

  it.each(operations)('%s accepts no nonce beside the time of the server', async (_, entry) => {
    const names = Object.keys(skewed)
    const before = Date.now()
    const answers = await Promise.all(names.map((name) => send(skewed[name]!(entry))))
    for (const [at, { status, json }] of answers.entries()) {
      expect({ name: names[at], status, reason: json.reason }).toEqual({
        name: names[at],
        status: 401,
        reason: 'CLOCK_SKEW',
      })
      expect(Number(json.server_time)).toBeGreaterThanOrEqual(before)
      expect(Number(json.server_time)).toBeLessThanOrEqual(Date.now())
    }
  })

  it.each(operations)('%s accepts a request once', async (_, entry) => {
    const request = signed(entry)
    const first = await send(request)
    expect(first.status, first.text).not.toBe(401)
    const second = await send(request)
    expect([second.status, second.json.reason]).toEqual([401, 'NONCE_REUSED'])
  })
})

async function disabledTenant(of: TestApp): Promise<Pair> {
  const { organization_id, member } = await of.createTenant()
  const now = new Date()
  await setOrganizationDisabled(of.database.db, {
    organization_id,
    disable_time: now,
    update_time: now,
  })
  return member
}

async function deletedPair(of: TestApp): Promise<Pair> {
  const pair = await of.createPair(tenant.organization_id, 'ROLE_MEMBER')
  // Used first, so that the service has it in its cache.
  expect((await of.call(pair, 'admin/GetRateLimit', tenant)).status).toBe(400)
  expect((await of.call(pair, 'admin/DeleteCredential', pair)).status).toBe(200)
  return pair
}
