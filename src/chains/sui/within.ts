/**
 * Does something with a time limit. Ends at once with the signal, whatever the work does: libraries
 * take their time to cancel.
 */
export async function within<result>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<result>,
): Promise<result> {
  signal.throwIfAborted()
  const ending = new AbortController()
  const cut = Promise.withResolvers<never>()
  const end = (reason: unknown) => {
    cut.reject(reason)
    ending.abort(reason)
  }
  const onAbort = () => end(signal.reason)
  const timer = setTimeout(() => end(new Error(`no answer within ${ms} ms`)), ms)
  signal.addEventListener('abort', onAbort)
  try {
    return await Promise.race([work(ending.signal), cut.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    // What the work left open, such as a stream of which one word was wanted, ends with it.
    ending.abort()
    cut.promise.catch(() => {})
  }
}
