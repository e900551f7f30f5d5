import { expect, test } from 'vitest'
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
  const secret = /secret|signature|header_value|api_key|endpoint|raw|data|page_token/
  for (const name of names) {
    if (!secret.test(name)) continue
    expect(targetOf({ [name]: 'S3CRET-LONG-VALUE' }), name).not.toHaveProperty(name)
    expect(JSON.stringify(targetOf({ [name]: 'S3CRET-LONG-VALUE' })), name).not.toContain('LONG')
  }
})
