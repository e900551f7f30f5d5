import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { type KeyRing, keyIdOfMaster } from '../storage/access/seal.ts'

/** How often a new first key is read before it seals: the other processes read it in the meantime. */
const settleReads = 3

/**
 * Reads the master keys again while the service runs, so that a rotation needs no restart. A key that is new
 * opens at once. A new first key seals three intervals later, when every process that reads the same keys
 * opens with it. Keys that cannot be read change nothing.
 */
export function startMasterKeyRefresh(options: {
  ring: KeyRing
  read(): Promise<readonly Buffer[]>
  clock: Clock
  log: Log
  intervalMs: number
}): { stop(): Promise<void> } {
  const { ring, read, clock, log, intervalMs } = options
  const stopping = new AbortController()
  const started = clock.now()
  const seen = new Map<string, number>()
  let isFailing = false

  const refresh = async (): Promise<void> => {
    const keys = await read()
    const now = clock.now()
    for (const key_id of ring.add(keys)) {
      seen.set(key_id, now)
      log.info({ key_id }, 'new master key read')
    }
    const [first] = keys
    const key_id = first && keyIdOfMaster(first)
    if (key_id === undefined || key_id === ring.key_id) return
    if (now - (seen.get(key_id) ?? started) < settleReads * intervalMs) return
    ring.use(key_id)
    log.info({ key_id }, 'secrets are sealed with a new master key')
  }

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await clock.sleep(intervalMs, stopping.signal).catch(() => {})
      if (stopping.signal.aborted) return
      try {
        await refresh()
        isFailing = false
      } catch (error) {
        // Once: a missing file would fill the log.
        if (!isFailing) log.warn({ err: error }, 'reading the master key failed, will retry')
        isFailing = true
      }
    }
  }
  const running = run()
  return {
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
