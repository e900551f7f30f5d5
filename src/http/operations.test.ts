import { expect, it } from 'vitest'
import { createAdmission } from '../domain/access/admit.ts'
import type { Installation } from '../domain/context.ts'
import type { LoopPace } from '../domain/limits/loop-pace.ts'
import { noFacts } from './exchange.ts'
import { createOperations } from './operations.ts'
import { createRoutes } from './routes.ts'

const unlimited = {
  ...{ per_second_limit: -1, per_hour_limit: -1, per_day_limit: -1, per_month_limit: -1 },
}

/** Operations of an organization that owes so many milliseconds, and the answers that were counted. */
const open = (owedMs: number) => {
  const answers: [organization_id: string, length: number][] = []
  const pace = {
    note() {},
    answer: (organization_id: string, length: number) =>
      void answers.push([organization_id, length]),
    owedMs: () => owedMs,
  } as Partial<LoopPace> as LoopPace
  const decision = { allowed: true, window: 'second', limit: 1, windows: [] }
  const operations = createOperations({
    installation: {} as Installation,
    routes: createRoutes({}),
    authenticator: {
      authenticate: async () => ({
        ...{ credential_id: 'c', organization_id: 'o', role: 'ROLE_ADMIN' as const },
      }),
      redeem: async () => undefined,
      takeUsed: () => [],
      forget() {},
    },
    admission: createAdmission(
      { limitsOf: () => unlimited } as never,
      { take: () => decision } as never,
      { pace },
    ),
    bodyLimitBytes: 100,
    timeoutMs: 10_000,
  })
  const headers = {
    'x-api-key': 'pk_0123456789abcdefghijkl',
    'x-api-nonce': 'n',
    'x-api-signature': 's',
    'content-type': 'application/json',
  }
  const call = (signal: AbortSignal) =>
    operations.perform({
      route: createRoutes({}).find('/v1/admin/ListNodes')!,
      ...{ method: 'POST', target: '/v1/admin/ListNodes', headers, body: Buffer.from('{}') },
      ...{ client: '127.0.0.1', signal, facts: noFacts('r'), setHeader() {} },
    })
  return { call, answers }
}

it('counts the answers of an organization in its pace', async () => {
  const { call, answers } = open(0)
  const answer = await call(new AbortController().signal)
  expect(answers).toEqual([['o', answer.length]])
})

it('begins no call of an organization whose large answers are not made up for', async () => {
  const { call, answers } = open(50)
  const client = new AbortController()
  const calling = call(client.signal)
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(answers).toEqual([])
  await expect(calling).rejects.toMatchObject({ reason: 'RATE_LIMITED', retryAfter: 1 })
})
