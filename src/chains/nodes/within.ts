import { NodeFault } from './fault.ts'

// One for all: without a reason every call would make an exception with its stack.
const over = new Error('the call is over')

/**
 * Runs work with a time limit. Ends as soon as the signal is aborted, whatever the work does: some
 * libraries take their time to cancel.
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
  const timer = setTimeout(() => end(new NodeFault('down', `no answer within ${ms} ms`)), ms)
  signal.addEventListener('abort', onAbort)
  try {
    return await Promise.race([work(ending.signal), cut.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    // Ends what the work left open, such as a stream of which one message was read.
    ending.abort(over)
    cut.promise.catch(() => {})
  }
}
