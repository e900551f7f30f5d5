import { expect, it } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import type { MethodUsage } from '../../storage/access/method-usage.ts'
import { createUsageWriter, type UsageDelta } from './usage.ts'

const delta = (method: string, call_count = 1): UsageDelta => ({
  organization_id: 'o',
  credential_id: 'k',
  chain: 'c',
  network: 'mainnet',
  method,
  call_count,
  error_count: 0,
  refused_count: 0,
})

const open = ({ maxRows = 10 } = {}) => {
  const stored: MethodUsage[][] = []
  const counted: UsageDelta[] = []
  let fails = false
  const never = (_: number, signal?: AbortSignal) =>
    new Promise<void>((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  const writer = createUsageWriter({
    clock: { now: () => Date.UTC(2026, 10, 15, 23, 59), sleep: never },
    log: silentLog,
    store: async (rows) => {
      if (fails) throw new Error('away')
      stored.push([...rows])
    },
    collect: () => counted.splice(0),
    maxRows,
  })
  return {
    writer,
    stored,
    counted,
    fail: (on: boolean) => {
      fails = on
    },
  }
}

it('writes one row per key, method and day', async () => {
  const { writer, stored, counted } = open()
  counted.push(delta('a', 2), delta('b'))
  writer.add([delta('a', 3)])
  await writer.flush()
  await writer.flush()
  expect(stored).toEqual([
    [
      { ...delta('a', 5), day: '2026-11-15' },
      { ...delta('b'), day: '2026-11-15' },
    ],
  ])
})

it('keeps unwritten counts up to a bound, and writes them when it stops', async () => {
  const { writer, stored, fail } = open({ maxRows: 2 })
  fail(true)
  writer.add([delta('a'), delta('b'), delta('c')])
  await expect(writer.flush()).rejects.toThrow('away')
  fail(false)
  writer.add([delta('a')])
  await writer.stop()
  expect(stored[0]?.map(({ method, call_count }) => [method, call_count]).sort()).toEqual([
    ['a', 2],
    ['b', 1],
  ])
})
