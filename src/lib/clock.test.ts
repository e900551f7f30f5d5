import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { systemClock } from './clock.ts'

it.each([2 ** 31, 8_760 * 3_600_000, Number.POSITIVE_INFINITY])(
  'a sleep of %i ms, which no single timer can be, does not end at once',
  async (ms) => {
    const stopping = new AbortController()
    const sleeping = systemClock.sleep(ms, stopping.signal)
    const first = await Promise.race([sleeping.then(() => 'over'), delay(30, 'sleeps')])
    stopping.abort(new Error('stopping'))
    await expect(sleeping).rejects.toThrow('stopping')
    expect(first).toBe('sleeps')
  },
)

it('a sleep of no time ends', () => systemClock.sleep(0))
