/**
 * Makes work that concurrent callers share. It is aborted when no caller waits for it any more; a
 * caller whose signal is aborted stops waiting at once.
 */
export function createShared<result>(work: (signal: AbortSignal) => Promise<result>) {
  let running: { promise: Promise<result>; waiting: number; own: AbortController } | undefined
  return async (signal: AbortSignal): Promise<result> => {
    signal.throwIfAborted()
    if (!running) {
      const own = new AbortController()
      const begun = { promise: work(own.signal), waiting: 0, own }
      running = begun
      const end = () => {
        if (running === begun) running = undefined
      }
      begun.promise.then(end, end)
    }
    const mine = running
    mine.waiting++
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([mine.promise, aborted])
    } finally {
      signal.removeEventListener('abort', onAbort)
      if (--mine.waiting === 0) {
        mine.own.abort(new Error('no caller waits for it'))
        if (running === mine) running = undefined
      }
    }
  }
}
