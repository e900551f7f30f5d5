import { describe, expect, it } from 'vitest'
import { createLoopPace, largeAnswerBytes } from './loop-pace.ts'

const open = () => {
  let time = 0
  const pace = createLoopPace(() => time)
  const pass = (ms: number) => {
    time += ms
  }
  return { pace, pass }
}

/** Both are active. */
const openShared = () => {
  const opened = open()
  opened.pace.note('quiet')
  opened.pace.note('noisy')
  return opened
}

describe('pace of long work', () => {
  it('lets an organization that is alone work as much as it likes', () => {
    const { pace, pass } = open()
    pace.note('one')
    expect([pace.take('one', 500), pace.take('one', 500)]).toEqual([0, 0])
    pace.note('other')
    pass(2_001)
    expect([pace.take('one', 500), pace.take('one', 500)]).toEqual([0, 0])
  })

  it('gives each organization less than a hundredth of the time beside others', () => {
    const { pace } = openShared()
    const waits = Array.from({ length: 5 }, () => pace.take('noisy', 4))
    expect(waits).toEqual([0, 500, 1_000, 1_500, 2_000])
    expect(pace.take('quiet', 12)).toBe(0)
  })

  it('exempts short work, and counts what was not waited for', () => {
    const { pace, pass } = openShared()
    expect(Array.from({ length: 3 }, () => pace.take('noisy', 2))).toEqual([0, 0, 0])
    pace.spend('noisy', 4)
    expect(pace.take('noisy', 3)).toBe(500)
    pass(875)
    pace.note('quiet')
    expect(pace.take('noisy', 3)).toBe(0)
  })

  it('refuses what would wait for more than three seconds, and does not count it', () => {
    const { pace, pass } = openShared()
    expect(pace.take('noisy', 100)).toBe(0)
    const refusal = expect.objectContaining({ reason: 'RATE_LIMITED', retryAfter: 13 })
    expect(() => pace.take('noisy', 100)).toThrow(refusal)
    expect(() => pace.check('noisy', 100)).toThrow(refusal)
    pass(10_000)
    pace.note('quiet')
    expect(pace.take('noisy', 100)).toBe(2_500)
  })

  it('counts the large answers of an organization apart, and only beside others', () => {
    const { pace, pass } = openShared()
    pace.answer('noisy', largeAnswerBytes, false)
    expect(pace.owedMs('noisy')).toBe(0)
    pace.answer('noisy', 524_288, true)
    pace.answer('noisy', 524_288, false)
    expect([pace.owedMs('noisy'), pace.owedMs('quiet'), pace.take('noisy', 4)]).toEqual([100, 0, 0])
    pass(100)
    expect(pace.owedMs('noisy')).toBe(0)
    for (let count = 0; count < 3; count++) pace.answer('noisy', 134_217_728, false)
    expect(pace.owedMs('noisy')).toBe(3_000)
    pass(2_001)
    expect(pace.owedMs('noisy')).toBe(0)
    pace.answer('noisy', 524_288, false)
    expect(pace.owedMs('noisy')).toBe(0)
  })
})
