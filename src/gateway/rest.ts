import type { Clock } from '../lib/clock.ts'

/** Whether a network is in use. */
export type Rest = {
  /** Marks a use. A promise while the network wakes up; undefined once it is awake. */
  use(): Promise<void> | undefined
  /** Keeps the network awake until the returned function is called. */
  hold(): () => void
  isAwake(): boolean
  stop(): void
}

const checksPerRest = 10

/**
 * Puts a network to sleep that nothing has used for a while, and wakes it for the next use. It begins asleep, unless
 * it never sleeps.
 */
export function createRest(options: {
  clock: Clock
  /** The time without use after which the network sleeps; 0 keeps it awake. */
  afterMs: number
  /** Whether something is open on the network that must stay so, such as a subscription. */
  isBusy(): boolean
  /** Resolves when calls can be answered, or when waiting any longer has no point. */
  wake(): Promise<void>
  sleep(): void
}): Rest {
  const { clock, afterMs } = options
  const stopped = new AbortController()
  let isAwake = false
  let isUsed = false
  let holds = 0
  let waking: Promise<void> | undefined

  const begin = (): void => {
    isAwake = true
    const own = options.wake().finally(() => {
      if (waking === own) waking = undefined
    })
    waking = own
    if (afterMs > 0) void watch()
  }

  // A mark per call costs nothing, a timer per call would.
  const watch = async (): Promise<void> => {
    let usedAt = clock.now()
    while (clock.now() - usedAt < afterMs) {
      await clock.sleep(afterMs / checksPerRest, stopped.signal).catch(() => {})
      if (stopped.signal.aborted) return
      if (isUsed || holds > 0 || options.isBusy()) usedAt = clock.now()
      isUsed = false
    }
    isAwake = false
    waking = undefined
    options.sleep()
  }
  if (afterMs === 0) begin()

  const use = (): Promise<void> | undefined => {
    isUsed = true
    if (!isAwake && !stopped.signal.aborted) begin()
    return waking
  }

  return {
    use,
    hold: () => {
      holds++
      void use()
      let isHeld = true
      return () => {
        if (isHeld) holds--
        isHeld = false
      }
    },
    isAwake: () => isAwake,
    stop: () => stopped.abort(),
  }
}
