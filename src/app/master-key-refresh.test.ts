import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { silentLog } from '../lib/log.ts'
import { createSealer } from '../storage/access/seal.ts'
import { startMasterKeyRefresh } from './master-key-refresh.ts'

const open = (first: Buffer) => {
  let now = 0
  let wake = () => {}
  let reads = 0
  let keys: () => Buffer[] = () => [first]
  const clock = {
    now: () => now,
    sleep: (_ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        wake = resolve
        signal?.addEventListener('abort', () => reject(signal.reason))
      }),
  }
  const ring = createSealer(first)
  const refresh = startMasterKeyRefresh({
    ...{ ring, clock, log: silentLog, intervalMs: 10 },
    read: async () => {
      reads++
      return keys()
    },
  })
  onTestFinished(() => refresh.stop())
  return {
    ring,
    give: (next: () => Buffer[]) => {
      keys = next
    },
    /** Lets one interval pass. */
    pass: async () => {
      now += 10
      const before = reads
      wake()
      await expect.poll(() => reads).toBe(before + 1)
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

test('a new first key opens at once, and seals when other processes have had time to read it', async () => {
  const [old, next] = [randomBytes(32), randomBytes(32)]
  const { key_id } = createSealer(next)
  const { ring, give, pass } = open(old)
  give(() => [next, old])
  await pass()
  expect(ring.key_ids).toContain(key_id)
  expect(ring.key_id).not.toBe(key_id)
  for (let interval = 0; interval < 2; interval++) await pass()
  expect(ring.key_id).not.toBe(key_id)
  await pass()
  expect(ring.key_id).toBe(key_id)
})

test('a key that was there as the second one for long seals at once when it becomes the first', async () => {
  const [old, next] = [randomBytes(32), randomBytes(32)]
  const { ring, give, pass } = open(old)
  give(() => [old, next])
  for (let interval = 0; interval < 5; interval++) await pass()
  expect(ring.key_id).toBe(createSealer(old).key_id)
  give(() => [next, old])
  await pass()
  expect(ring.key_id).toBe(createSealer(next).key_id)
})

test('keys that cannot be read, and a key that is removed, change nothing', async () => {
  const [old, next] = [randomBytes(32), randomBytes(32)]
  const { ring, give, pass } = open(old)
  const sealed = ring.seal('old', 'c')
  give(() => {
    throw new Error('no such file')
  })
  await pass()
  expect(ring.key_id).toBe(createSealer(old).key_id)
  give(() => [next])
  for (let interval = 0; interval < 4; interval++) await pass()
  expect(ring.key_id).toBe(createSealer(next).key_id)
  expect(ring.open(sealed, 'c').toString()).toBe('old')
})
