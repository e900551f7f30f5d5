import { describe, expect, it } from 'vitest'
import { admitSize, createAdmission, type Paid } from '../../domain/access/admit.ts'
import type { Principal } from '../../domain/access/principal.ts'
import { createLimiter } from '../../domain/limits/limiter.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import type { Network } from '../network.ts'
import { answered } from './answer.ts'
import { createEnvelopeReader, type RpcCall } from './envelope.ts'
import { createServe } from './serve.ts'
import type { Served } from './served.ts'

const principal: Principal = { organization_id: 'o', credential_id: 'k', role: 'ROLE_MEMBER' }

/** A gateway with this many calls an hour, and a count of the bodies whose params were parsed. */
function open(per_hour_limit: number, { result = '"0x1"' } = {}) {
  const limits = { per_second_limit: -1, per_hour_limit, per_day_limit: -1, per_month_limit: -1 }
  const limiter = createLimiter({ clock: systemClock, log: silentLog })
  const admission = createAdmission(
    { limitsOf: () => limits, forget: () => {}, setDefaults: () => {} },
    limiter,
  )
  const reader = createEnvelopeReader({ batchLimit: 1000 })
  const seen = { parsed: 0, called: [] as string[], refused: 0 }
  const serve = createServe({
    read: (body, isGlance) => {
      if (!isGlance) seen.parsed++
      return reader(body, isGlance)
    },
    admission,
    maxBatchBytes: 1_000_000,
  })
  const network = {
    chain: 'c',
    network: 'm',
    sessionOf: () => ({ principal }),
    call: (call: RpcCall, _: unknown, done: (answer: unknown) => void) => {
      seen.called.push(String(call.id))
      done(answered(result))
    },
    countRefused: () => {
      seen.refused++
    },
  } as unknown as Network
  const ask = (body: string, ahead?: Paid) =>
    new Promise<Served>((resolve) => serve(network, principal, body, resolve, ahead))
  const used = async () => {
    const decision = await admission.admit('o', 'c', 0)
    return per_hour_limit - (decision.windows[0]?.remaining ?? 0)
  }
  return { ask, seen, used, admission }
}

const call = (params: string, id = '7') =>
  `{"jsonrpc":"2.0","id":${id},"method":"evm_call","params":${params}}`
const text = (bytes: number) => call(`["${'a'.repeat(bytes)}"]`)
const reasonOf = ({ body }: Served) => JSON.parse(body).error.data.reason

it('begins the calls of a batch in turns, so that other requests are served between them', async () => {
  const { ask, seen } = open(10_000)
  const counts: number[] = []
  let isOver = false
  const watch = () => {
    counts.push(seen.called.length)
    if (!isOver) setImmediate(watch)
  }
  const answer = ask(`[${Array.from({ length: 100 }, (_, id) => call('[]', `${id}`)).join()}]`)
  setImmediate(watch)
  const { body } = await answer
  isOver = true
  expect(JSON.parse(body).map(({ id }: { id: number }) => id)).toEqual([...Array(100).keys()])
  const steps = counts.map((count, index) => count - (counts[index - 1] ?? 0))
  expect(Math.max(...steps)).toBeLessThanOrEqual(32)
})

it('calls of an organization wait for its large answers while others are active', async () => {
  const { ask, admission } = open(1_000, { result: `"0x${'0'.repeat(300_000)}"` })
  await admission.admit('o', 'c', 0)
  await admission.admit('other', 'c', 1)
  const begin = performance.now()
  const answers = await Promise.all([ask(call('[]')), ask(call('[]')), ask(call('[]'))])
  // A node gave them: 2.3 ms of work each, of which the organization has 5 % of the time.
  expect(performance.now() - begin).toBeGreaterThan(80)
  for (const { status, body, pieces } of answers)
    expect([status, pieces?.join('') === body]).toEqual([200, true])
})

it('a body whose pace is over is refused unread, with its id, and counts as one call', async () => {
  const { ask, admission, seen, used } = open(10_000)
  await admission.admit('o', 'c', 0)
  await admission.admit('other', 'c', 1)
  admission.pace.spend('o', 100)
  const ahead = await admitSize(admission, { organization_id: 'o', chain: 'c' }, 1_000_000)
  const served = await ask(text(1_000).slice(0, 50), ahead)
  expect([served.status, JSON.parse(served.body).id, reasonOf(served)]).toEqual([
    ...[429, 7, 'RATE_LIMITED'],
  ])
  expect(served.retryAfter).toBe(13)
  expect([seen.parsed, seen.refused, await used()]).toEqual([0, 1, 1])
})

describe('a body against the limits', () => {
  it.each([
    ['an ordinary call', call('["0x1","latest"]'), 1],
    ['a call of 16,000 bytes', text(16_000), 1],
    ['a call of 17,000 bytes', text(17_000), 2],
    ['a call of 1 MB', text(1_000_000), 62],
    ['a call of 10,000 values in 20 kB', call(`[${'1,'.repeat(10_000)}1]`), 5],
    ['a batch of three', `[${call('[]')},${call('[]')},${call('[]')}]`, 3],
    ['a batch of 900 in 50 kB', `[${Array(900).fill(call('[]')).join()}]`, 900],
    ['a batch of two in 100 kB', `[${text(50_000)},${text(50_000)}]`, 7],
  ])('%s counts as many calls as it costs', async (_, body, cost) => {
    const { ask, used } = open(10_000)
    expect((await ask(body)).status).toBe(200)
    expect(await used()).toBe(cost)
  })

  it('is admitted once an hour where it costs more than the limit', async () => {
    const { ask, seen } = open(10)
    expect((await ask(text(1_000_000))).status).toBe(200)
    expect((await ask(text(1_000_000))).status).toBe(429)
    expect(seen.parsed).toBe(1)
  })

  it.each([
    ['small', call('[[[]]]')],
    ['large', text(100_000)],
    ['of many values', call(`[${'[],'.repeat(30_000)}[]]`)],
    ['deep', call('['.repeat(100_000))],
  ])('of a blocked key is refused without being parsed: %s', async (_, body) => {
    const { ask, seen } = open(0)
    const served = await ask(body)
    expect(served.status).toBe(403)
    expect(reasonOf(served)).toBe('RATE_LIMIT_BLOCKED')
    expect(JSON.parse(served.body).id).toBe(7)
    expect(seen).toEqual({ parsed: 0, called: [], refused: 1 })
  })

  it('of many values is refused before it is parsed when its bytes fit and its values do not', async () => {
    const { ask, seen } = open(20)
    await ask(`[${Array(18).fill(call('[]')).join()}]`)
    const { status } = await ask(call(`[${'[],'.repeat(9_000)}[]]`))
    expect([status, seen.parsed]).toEqual([429, 1])
  })

  it('admits the first calls of a large batch and refuses the others by their ids', async () => {
    const { ask, seen } = open(100)
    const calls = Array.from({ length: 300 }, (_, id) => call('["0x1"]', `${id}`))
    const { status, body } = await ask(`[${calls.join()}]`)
    const answers = JSON.parse(body) as { id: number; error?: unknown }[]
    expect([status, answers.map(({ id }) => id)]).toEqual([200, calls.map((_, id) => id)])
    expect(answers.filter(({ error }) => error === undefined)).toHaveLength(100)
    expect([seen.called.length, seen.refused]).toEqual([100, 200])
  })
})

describe('a small batch against the limits', () => {
  const batch = (count: number) =>
    `[${Array.from({ length: count }, (_, id) => call('["0x1"]', `${id}`)).join()}]`

  it.each([
    ['blocked', 0, 403],
    ['that has used its limit', 3, 429],
  ])('of a key %s is refused call by call, without being parsed', async (_, limit, expected) => {
    const { ask, seen } = open(limit)
    if (limit > 0) await ask(batch(limit))
    const before = { ...seen, called: [...seen.called] }
    const { status, body } = await ask(batch(5))
    const answers = JSON.parse(body) as { id: number; error?: unknown }[]
    expect([status, answers.map(({ id }) => id)]).toEqual([expected, [0, 1, 2, 3, 4]])
    expect(answers.every(({ error }) => error !== undefined)).toBe(true)
    expect(seen).toEqual({ ...before, refused: before.refused + 5 })
  })

  it('is served as far as the limit goes', async () => {
    const { ask, seen, used } = open(3)
    const { status, body } = await ask(batch(5))
    const answers = JSON.parse(body) as { error?: unknown }[]
    expect([status, answers.map(({ error }) => error === undefined)]).toEqual([
      200,
      [true, true, true, false, false],
    ])
    expect([seen.called, seen.refused, await used()]).toEqual([['0', '1', '2'], 2, 3])
  })

  it('counts as one call when it is not JSON', async () => {
    const { ask, used } = open(10)
    expect((await ask(batch(3).slice(0, -1))).status).toBe(400)
    expect(await used()).toBe(1)
  })
})

describe('the shape of a body', () => {
  it.each([
    ['64 levels', 62, 200],
    ['65 levels', 63, 400],
  ])('of %s, small and large', async (_, levels, status) => {
    const { ask } = open(10_000)
    const deep = '['.repeat(levels) + ']'.repeat(levels)
    for (const params of [`[${deep}]`, `["${'a'.repeat(20_000)}",${deep}]`]) {
      const served = await ask(call(params))
      expect(served.status).toBe(status)
      if (status === 400) expect(served.body).toContain('nested deeper than 64 levels')
    }
    const inBatch = await ask(`[${call(`[${deep.slice(1, -1)}]`)}]`)
    expect(inBatch.status).toBe(status)
  })

  it('of more than 100,000 values is refused with 413', async () => {
    const { ask, seen } = open(10_000)
    const served = await ask(call(`[${'1,'.repeat(100_000)}1]`))
    expect([served.status, reasonOf(served), seen.parsed]).toEqual([413, 'BODY_TOO_LARGE', 0])
  })

  it('that takes seconds to parse is refused within milliseconds', async () => {
    const { ask } = open(10_000)
    const begun = performance.now()
    for (const one of ['[', '[],', '{"a":', '{},', '\\"']) {
      const served = await ask(call(one.repeat(5_000_000 / one.length)))
      expect(served.status).toBeGreaterThanOrEqual(400)
    }
    expect(performance.now() - begun).toBeLessThan(1_000)
  })
})

describe('the id of a call that is refused unread', () => {
  const long = `["${'a'.repeat(20_000)}"]`
  it.each([
    ['in front of the params', `{"jsonrpc":"2.0","id":"x-1","method":"m","params":${long}}`, 'x-1'],
    ['behind the params', `{"method":"m","params":${long},"id":42,"jsonrpc":"2.0"}`, 42],
    ['last', `{"method":"m","params":${long}, "id": 43 }\n`, 43],
    ['inside the params', `{"method":"m","params":[{"id":1},${long},{"id":2}]}`, null],
    ['too long', `{"id":"${'i'.repeat(9_000)}","method":"m","params":[]}`, null],
    ['of a batch', `[{"id":1,"method":"m","params":${long}}]`, null],
    ['no id', `{"id":{},"method":"m","params":${long}}`, null],
  ])('%s', async (_, body, id) => {
    const { ask } = open(0)
    expect(JSON.parse((await ask(body)).body).id).toBe(id)
  })
})
