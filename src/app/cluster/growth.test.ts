import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import { createRoom, watchLoad } from './growth.ts'

const rule = { busyShare: 0.5, samples: 5, everyMs: 1_000, pauseMs: 60_000 }

describe('a service that grows by itself', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** Lets seconds pass in which the process uses a share of a core. */
  const watch = (grow: () => Promise<boolean>) => {
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
    const grow = vi.fn(async () => true)
    const load = watch(grow)
    await load.pass(60, 0.2)
    await load.pass(1, 1)
    await load.pass(60, 0.1)
    expect(grow).not.toHaveBeenCalled()
    await load.stop()
  })

  it('grows once when it was busy for five seconds', async () => {
    const grow = vi.fn(async () => true)
    const load = watch(grow)
    await load.pass(10, 0.1)
    await load.pass(5, 0.9)
    expect(grow).toHaveBeenCalledOnce()
    await load.pass(100, 0.9)
    expect(grow).toHaveBeenCalledOnce()
  })

  it('retries after a pause when the start of the processes fails', async () => {
    const grow = vi.fn(async () => true)
    grow.mockRejectedValueOnce(new Error('no memory'))
    const load = watch(grow)
    await load.pass(30, 0.9)
    expect(grow).toHaveBeenCalledOnce()
    await load.pass(60, 0.9)
    expect(grow).toHaveBeenCalledTimes(2)
  })

  it('warns once while there is too little memory, and looks again after each pause', async () => {
    const warn = vi.fn()
    let available = 300 * 1024 ** 2
    const room = createRoom({ workers: 8, log: { warn }, available: () => available })
    const counts: (number | undefined)[] = []
    const load = watch(async () => {
      counts.push(room())
      return counts.at(-1) !== undefined
    })
    await load.pass(200, 0.9)
    expect(counts).toEqual([undefined, undefined, undefined])
    expect(warn.mock.calls).toEqual([
      [{ available_mib: 300 }, expect.stringContaining('too little memory')],
    ])
    available = 1024 ** 3
    await load.pass(200, 0.9)
    expect(counts.slice(3)).toEqual([3])
    expect(warn).toHaveBeenCalledOnce()
  })
})
