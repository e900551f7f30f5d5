import { describe, expect, it } from 'vitest'
import { deleteExpiredNonces } from '../../src/storage/access/nonces.ts'
import { type Answer, shiftedClock, startTestApp, type TestApp } from '../helpers/app.ts'
import { authHeaders, nextNonce, type Pair, signature } from '../helpers/signer.ts'

const clock = shiftedClock()
const service = await startTestApp({ clock })
const twin = await startTestApp({ beside: service, clock })
const tenant = await service.createTenant()
const path = '/v1/admin/GetOrganizationByDomain'
const body = JSON.stringify({ domain: tenant.domain })

const sign = (nonce = nextNonce(clock.now()), pair: Pair = tenant.member) => ({
  body,
  headers: { 'content-type': 'application/json', ...authHeaders(pair, { path, body, nonce }) },
})

const outcome = ({ status, json }: Answer) => (status === 200 ? 'accepted' : json.reason)

const count = (answers: Answer[]) =>
  Object.groupBy(answers.map(outcome), (name: string) => name) as Record<string, string[]>

const expectOneAccepted = (answers: Answer[]) => {
  const { accepted, NONCE_REUSED } = count(answers)
  expect([accepted?.length, NONCE_REUSED?.length]).toEqual([1, answers.length - 1])
}

const inParallel = (copies: number, targets: TestApp[], request = sign()) =>
  Promise.all(
    Array.from({ length: copies }, (_, at) => targets[at % targets.length]!.send(path, request)),
  )

describe('a nonce', () => {
  it('is accepted once when 100 copies of a request arrive together', async () => {
    for (let round = 0; round < 5; round++) expectOneAccepted(await inParallel(100, [service]))
  })

  it('is accepted once over two services on one database', async () => {
    for (let round = 0; round < 5; round++)
      expectOneAccepted(await inParallel(100, [service, twin]))
  })

  it('is remembered across a restart', async () => {
    const before = await startTestApp({ beside: service, clock })
    const request = sign()
    expect(outcome(await before.send(path, request))).toBe('accepted')
    await before.stop()
    const after = await startTestApp({ beside: service, clock })
    expect(outcome(await after.send(path, request))).toBe('NONCE_REUSED')
    expect(outcome(await after.send(path, sign()))).toBe('accepted')
  })

  it('is not spent by a wrong signature', async () => {
    const right = sign()
    const wrong = {
      body,
      headers: {
        ...right.headers,
        'x-api-signature': signature('guess', {
          path,
          body,
          nonce: right.headers['x-api-nonce'],
        }),
      },
    }
    for (let attempt = 0; attempt < 3; attempt++)
      expect(outcome(await service.send(path, wrong))).toBe('UNAUTHENTICATED')
    expect(outcome(await service.send(path, right))).toBe('accepted')
  })

  it('is spent by a signed request that fails otherwise', async () => {
    const bad = '{"domain":"UPPER"}'
    const headers = {
      'content-type': 'application/json',
      ...authHeaders(tenant.member, { path, body: bad }),
    }
    expect(outcome(await service.send(path, { body: bad, headers }))).toBe('INVALID_REQUEST')
    expect(outcome(await service.send(path, { body: bad, headers }))).toBe('NONCE_REUSED')
  })

  it('may be used by two credentials', async () => {
    const nonce = nextNonce()
    expect(outcome(await service.send(path, sign(nonce)))).toBe('accepted')
    expect(outcome(await service.send(path, sign(nonce, tenant.admin)))).toBe('accepted')
  })

  it('is a time in milliseconds, microseconds or nanoseconds', async () => {
    const ms = String(Date.now())
    for (const nonce of [ms, `${ms}123`, `${ms}123456`])
      expect([nonce, outcome(await service.send(path, sign(nonce)))]).toEqual([nonce, 'accepted'])
  })

  it('in seconds is refused with words that report it', async () => {
    const answer = await service.send(path, sign(String(Math.floor(Date.now() / 1000))))
    expect([answer.status, answer.json.reason]).toEqual([401, 'CLOCK_SKEW'])
    expect(answer.json.detail).toMatch(/^The nonce is in seconds\. /)
  })

  it('needs no order', async () => {
    const now = Date.now()
    const offsets = [0, -60_000, 60_000, -299_000, 299_000, -1]
    for (const offset of offsets)
      expect(outcome(await service.send(path, sign(`${now + offset}777`)))).toBe('accepted')
  })

  it('is accepted up to five minutes from the clock of the server and not beyond', async () => {
    const at = (ms: number) =>
      service.send(path, sign(`${clock.now() + ms}${nextNonce().slice(13)}`))
    expect(outcome(await at(-298_000))).toBe('accepted')
    expect(outcome(await at(-300_500))).toBe('CLOCK_SKEW')
    expect(outcome(await at(298_000))).toBe('accepted')
    expect(outcome(await at(302_000))).toBe('CLOCK_SKEW')
  })

  it('cannot be replayed after it was swept, because by then it is too old', async () => {
    const request = sign(`${clock.now() + 290_000}001`)
    expect(outcome(await service.send(path, request))).toBe('accepted')
    clock.shift(700_000)
    const { db } = service.database
    while ((await deleteExpiredNonces(db, new Date(clock.now()), 1_000)) > 0);
    const { rows } = await service.database.pool.query('select count(*)::int from request_nonce')
    expect(rows[0].count).toBe(0)
    expect(outcome(await service.send(path, request))).toBe('CLOCK_SKEW')
  })
})
