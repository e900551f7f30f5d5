import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import { watchLoad } from './growth.ts'

const rule = { busyShare: 0.5, samples: 5, everyMs: 1_000, pauseMs: 60_000 }

describe('a service that grows by itself', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** Lets seconds pass in which the process uses a share of a core. */
  const watch = (grow: () => Promise<void>) => {
    let [time, cpu] = [0, 0]
    const load = watchLoad({ grow, log: silentLog, rule, cpu: () => cpu, now: () => time })
    const pass = async (seconds: number, share: number) => {
      for (let second = 0; second < seconds; second++) {
        time += 1_000
        cpu += share * 1_000_000
        await vi.advanceTimersByTimeAsync(1_000)
      }
    }
    return { ...load, pass }
  }

  it('stays one process while it is idle, and through short bursts', async () => {
    const grow = vi.fn(async () => {})
    const load = watch(grow)
    await load.pass(60, 0.2)
    await load.pass(1, 1)
    await load.pass(60, 0.1)
    expect(grow).not.toHaveBeenCalled()
    await load.stop()
  })

  it('grows once when it was busy for five seconds', async () => {
    const grow = vi.fn(async () => {})
    const load = watch(grow)
    await load.pass(10, 0.1)
    await load.pass(5, 0.9)
    expect(grow).toHaveBeenCalledOnce()
    await load.pass(100, 0.9)
    expect(grow).toHaveBeenCalledOnce()
  })

  it('retries after a pause when the start of the processes fails', async () => {
    const grow = vi.fn(async () => {})
    grow.mockRejectedValueOnce(new Error('no memory'))
    const load = watch(grow)
    await load.pass(30, 0.9)
    expect(grow).toHaveBeenCalledOnce()
    await load.pass(60, 0.9)
    expect(grow).toHaveBeenCalledTimes(2)
  })
})
