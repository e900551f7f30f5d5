import { PortolanError } from './error.ts'

/** What came back, read to its end. */
export type Answer = { url: string; status: number; headers: Headers; text: string }

/** One HTTP exchange. */
export type Exchange = {
  url: string
  headers: Record<string, string>
  body: Uint8Array<ArrayBuffer>
  fetch: typeof fetch
  timeout_ms: number
  signal?: AbortSignal | undefined
}

/**
 * Posts once and reads the whole answer within the time limit. A caller's own abort comes out as
 * the reason of its signal; everything else is a PortolanError.
 */
export async function send(exchange: Exchange): Promise<Answer> {
  const { url, headers, body, fetch, timeout_ms, signal } = exchange
  signal?.throwIfAborted()
  const controller = new AbortController()
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  let late = false
  const timer = setTimeout(() => {
    late = true
    controller.abort()
  }, timeout_ms)
  try {
    // A signature holds for one path only, so that following a redirect could never work.
    const init = { method: 'POST', headers, body, redirect: 'manual' } as const
    const response = await fetch(url, { ...init, signal: controller.signal })
    return { url, status: response.status, headers: response.headers, text: await response.text() }
  } catch (cause) {
    if (signal?.aborted) throw signal.reason
    throw late ? timedOut(url, timeout_ms, cause) : failed(url, cause)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

const timedOut = (url: string, ms: number, cause: unknown) =>
  new PortolanError({
    status: 0,
    code: 'DEADLINE_EXCEEDED',
    reason: 'TIMED_OUT',
    detail: `No answer from ${url} within ${ms} ms. It is not known whether the call took effect.`,
    cause,
  })

const failed = (url: string, cause: unknown) =>
  new PortolanError({
    status: 0,
    code: 'UNAVAILABLE',
    reason: 'NETWORK_FAILED',
    detail: `No answer from ${url}: ${rootMessage(cause)}.`,
    cause,
  })

/** fetch says only "fetch failed" and hides the reason one level below. */
function rootMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return rootMessage(error.cause)
  return error.message || ('code' in error ? String(error.code) : error.name)
}
