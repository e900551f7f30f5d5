import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import type { RateLimits } from '../limits/decision.ts'
import { createLimiter } from '../limits/limiter.ts'
import type { LoopPace } from '../limits/loop-pace.ts'
import { admitBody, createAdmission, rateLimited } from './admit.ts'

const limits: RateLimits = {
  per_second_limit: -1,
  per_hour_limit: 3,
  per_day_limit: -1,
  per_month_limit: -1,
}
const open = (limitsOf: () => RateLimits | Promise<RateLimits>) =>
  createAdmission(
    { limitsOf, forget: () => {}, setDefaults: () => {} },
    createLimiter({ clock: systemClock, log: silentLog }),
  )

describe('the pace of bodies', () => {
  const openPaced = () => {
    const asked: string[] = []
    const pace: LoopPace = {
      note: () => {},
      check: () => {},
      take: (organization_id, ms) => {
        asked.push(`${organization_id} takes ${ms.toFixed(1)}`)
        return 0
      },
      spend: (organization_id, ms) => asked.push(`${organization_id} spends ${ms.toFixed(1)}`),
      answer: () => {},
      owedMs: () => 0,
    }
    const unlimited = { ...limits, per_hour_limit: -1 }
    const admission = createAdmission(
      { limitsOf: () => unlimited, forget: () => {}, setDefaults: () => {} },
      createLimiter({ clock: systemClock, log: silentLog }),
      { pace },
    )
    const admit = async (text: string) => {
      const size = { bytes: text.length, text: () => text, maxDepth: 16 }
      await admitBody(admission, { organization_id: 'o', chain: 'c' }, size)
      return asked.splice(0)
    }
    return { admit, pace }
  }

  it('is by what they cost the event loop, which they wait for before they are looked at', async () => {
    const { admit } = openPaced()
    expect(await admit(`["${'a'.repeat(3_499_996)}"]`)).toEqual(['o takes 58.3', 'o spends 0.0'])
    expect(await admit(`[${'[],'.repeat(39_997)}[]]`)).toEqual(['o takes 2.0', 'o takes 22.0'])
  })

  it('keeps a body unread that would wait for too long', async () => {
    const { admit, pace } = openPaced()
    pace.take = () => {
      throw new Error('too long')
    }
    await expect(admit('a'.repeat(400_000))).rejects.toThrow('too long')
  })
})

describe('passes over long bodies', () => {
  it('take place one in each turn of the event loop, of organizations in rotation', async () => {
    const admission = open(() => limits)
    const done: string[] = []
    const pass = async (organization_id: string, name: string) => {
      await admission.letOthersRun(organization_id, 44_000)
      done.push(name)
    }
    for (const name of ['n1', 'n2', 'n3']) void pass('noisy', name)
    void pass('quiet', 'q1')
    await Promise.resolve()
    expect(done).toEqual([])
    for (const name of ['n1', 'q1', 'n2', 'n3']) {
      await turn()
      expect(done.splice(0)).toEqual([name])
    }
  })

  it('do not wait where the body is short', () => {
    expect(open(() => limits).letOthersRun('o', 32_768)).toBeUndefined()
  })
})

describe('admission', () => {
  it('answers without waiting where the limits are known', () => {
    const admission = open(() => limits)
    expect(admission.admit('o', 'q')).toMatchObject({ allowed: true, remaining: 2 })
  })

  it('waits for limits that are read first', async () => {
    const decision = open(async () => limits).admit('o', 'q')
    expect(decision).toBeInstanceOf(Promise)
    expect(await decision).toMatchObject({ allowed: true })
  })

  it('counts one call unless a cost is given, and a batch as a whole', async () => {
    const admission = open(() => limits)
    await admission.admit('o', 'q', 2)
    expect(await admission.admit('o', 'q', 2)).toMatchObject({ allowed: false, remaining: 1 })
    expect(await admission.admit('o', 'q')).toMatchObject({ allowed: true, remaining: 0 })
    expect(await admission.admit('o', 'c')).toMatchObject({ allowed: true })
  })

  it('fails when the limits cannot be read, instead of admitting', async () => {
    const admission = open(() => Promise.reject(new Error('gone')))
    await expect(admission.admit('o', 'q')).rejects.toThrow('gone')
  })

  it('counts a large body as many calls, and never as more than the smallest limit', async () => {
    const admission = open(() => ({ ...limits, per_hour_limit: 10, per_day_limit: 1_000 }))
    expect(await admission.admitUpTo('o', 'q', 4)).toMatchObject({ paid: 4 })
    const more = await admission.admitUpTo('o', 'q', 6, 4)
    expect(more).toMatchObject({ paid: 6, decision: { allowed: true, remaining: 4 } })
    const over = await admission.admitUpTo('o', 'q', 5)
    expect(over).toMatchObject({ paid: 0, decision: { allowed: false, remaining: 4 } })
    const capped = await admission.admitUpTo('p', 'q', 320)
    expect(capped).toMatchObject({ paid: 10, decision: { allowed: true, remaining: 0 } })
    expect(await admission.admitUpTo('p', 'q', 500, 10)).toMatchObject({ paid: 10 })
  })

  it('refuses a large body where a limit of 0 blocks', async () => {
    const admission = open(() => ({ ...limits, per_day_limit: 0 }))
    expect((await admission.admitUpTo('o', 'q', 9)).decision.allowed).toBe(false)
  })

  it('says which limit is used up and when to come back', async () => {
    const admission = open(() => ({ ...limits, per_hour_limit: 1 }))
    await admission.admit('o', 'q')
    const error = rateLimited(await admission.admit('o', 'q'))
    expect(error.reason).toBe('RATE_LIMITED')
    expect(error.message).toBe('The limit of 1 calls per hour is used up.')
    expect(error.retryAfter).toBeGreaterThanOrEqual(1)
    expect(error.headers['RateLimit-Policy']).toBe('"hour";q=1;w=3600')
  })

  it('says of a limit of 0 that it blocks, and of no time to wait', async () => {
    const admission = open(() => ({ ...limits, per_hour_limit: 0 }))
    const error = rateLimited(await admission.admit('o', 'q'))
    expect([error.reason, error.retryAfter]).toEqual(['RATE_LIMIT_BLOCKED', undefined])
    expect(Object.keys(error.headers)).toEqual(['RateLimit', 'RateLimit-Policy'])
  })
})
