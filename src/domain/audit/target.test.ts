import type { TSchema } from 'typebox'
import { expect, test } from 'vitest'
import { accessOf } from '../../contract/access.ts'
import { requestSchema, responseSchema } from '../../contract/operation.ts'
import { catalogue } from '../../contract/operations/catalogue.ts'
import { targetOf } from './target.ts'

test('a target has the ids and settings of request and answer, without secrets', () => {
  const request = {
    wallet_id: 'w',
    webhook_endpoint: 'https://user:pass@example.org/hook/token?key=1',
    addresses: ['a', 'b', 'c'],
    header_value: 'Bearer secret',
    api_secret: 'secret',
    signature: '0x01',
    data: '0x02',
  }
  const response = {
    credential: { credential_id: 'c', api_key: 'plk_1234567890', api_secret: 'secret' },
    webhook_signing_secret: 'whsec_secret',
    signing_secret: 'secret',
  }
  expect(targetOf(request, response)).toEqual({
    credential_id: 'c',
    api_key_hint: 'plk_1234…',
    wallet_id: 'w',
    webhook_origin: 'https://example.org',
    address_count: 3,
  })
})

test('a target is small whatever the request holds', () => {
  const name = 'x'.repeat(100_000)
  const events = Array.from({ length: 10_000 }, () => name)
  expect(JSON.stringify(targetOf({ name, events, domain: { name } })).length).toBeLessThan(6_000)
})

test('no field of the contract that holds a secret is recorded as it is', () => {
  const names = new Set(
    catalogue.flatMap(({ row }) => [...Object.keys(row.request), ...Object.keys(row.response)]),
  )
  const secret =
    /secret|signature|header_value|api_key|endpoint|raw|data|page_token|password|^token$/
  for (const name of names) {
    if (!secret.test(name)) continue
    expect(targetOf({ [name]: 'S3CRET-LONG-VALUE' }), name).not.toHaveProperty(name)
    expect(JSON.stringify(targetOf({ [name]: 'S3CRET-LONG-VALUE' })), name).not.toContain('LONG')
  }
})

/** What a request says and the log does not. A field that is added to the contract is recorded, or is added here. */
const withheld: Record<string, string> = {
  api_secret: 'a secret',
  data: 'of any length; the hash of the transaction covers it',
  header_value: 'a secret',
  password: 'a secret',
  signature: 'of any length; the hash of the transaction covers it',
  token: 'a secret',
}

const sampleOf = (schema: TSchema): unknown => {
  const one = schema as TSchema & {
    type?: string
    enum?: unknown[]
    items?: TSchema
    anyOf?: TSchema[]
    properties?: Record<string, TSchema>
  }
  if (one.enum) return one.enum[0]
  if (one.anyOf) return sampleOf(one.anyOf[0]!)
  if (one.type === 'integer') return 7
  if (one.type === 'boolean') return true
  if (one.type === 'array') return [sampleOf(one.items!)]
  if (one.type === 'object')
    return Object.fromEntries(
      Object.entries(one.properties ?? {}).map(([name, field]) => [name, sampleOf(field)]),
    )
  return 'https://sample.example:4222'
}

test('every id and every setting of a change is recorded, or listed as withheld', () => {
  const missing: string[] = []
  const asked = new Set<string>()
  for (const { service, name, row } of catalogue) {
    if (accessOf({ name }) === 'read') continue
    const check = (schema: TSchema, at: string) => {
      for (const [field, inner] of Object.entries(
        (schema as { properties?: Record<string, TSchema> }).properties ?? {},
      )) {
        asked.add(field)
        const sample = sampleOf(inner)
        const target = targetOf({ [field]: sample })
        const isNested = typeof sample === 'object' && !Array.isArray(sample)
        if (isNested) check(inner, `${at}.${field}`)
        const isKept = Object.keys(target).length > 0
        if (isKept === Object.hasOwn(withheld, field)) missing.push(`${at}.${field}`)
      }
    }
    check(requestSchema(row, service), `${service}/${name}`)
    const answer = sampleOf(responseSchema(row, service)) as Record<string, unknown>
    const target = targetOf({}, answer)
    const records = Object.values(answer).filter((value) => typeof value === 'object')
    for (const field of [answer, ...records].flatMap((one) => Object.keys(one ?? {})))
      if (field.endsWith('_id') && !Object.hasOwn(target, field))
        missing.push(`${service}/${name}: ${field}`)
  }
  expect([...new Set(missing)]).toEqual([])
  expect(Object.keys(withheld).filter((field) => !asked.has(field))).toEqual([])
})

test('what a nested payload says is recorded', () => {
  const token_payload = { erc1155: { contract_address: '0x01', token_id: '1', value: '2' } }
  expect(targetOf({ token_payload })).toEqual({ ...token_payload.erc1155 })
})

test('servers that are no host and port may have a password in them', () => {
  const servers = ['nats.example:4222', '[2001:db8::1]:4222', 'nats://u:secret@nats.example:4222']
  expect(targetOf({ servers })).toEqual({
    servers: ['nats.example:4222', '[2001:db8::1]:4222', 'not a host and port'],
  })
})

test('an id that the answer has another one for is recorded beside it', () => {
  const request = { credential_id: 'old', overlap_seconds: 0 }
  expect(targetOf(request, { credential: { credential_id: 'new' } })).toEqual({
    credential_id: 'old',
    new_credential_id: 'new',
    overlap_seconds: 0,
  })
})
