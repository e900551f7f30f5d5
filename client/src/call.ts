import type { Clock } from './clock.ts'
import type { authHeaders } from './contract.ts'
import type { Nonces } from './nonces.ts'
import { readAnswer, serverTime } from './read-answer.ts'
import { bodyOf } from './request-body.ts'
import { retryDelay } from './retry.ts'
import { send } from './send.ts'
import type { Sign } from './sign.ts'

/** What every call may be given beside its request. */
export type CallOptions = {
  /** Gives up when it is aborted; the promise then rejects with the reason of the signal. */
  signal?: AbortSignal
  /**
   * For operations that create: the same key with the same request gives the same answer for 24 hours
   * instead of creating twice. A UUID is a good choice; keep it until the call has succeeded.
   */
  idempotency_key?: string
}

/** Calls an operation by its name. */
export type Call = (
  /** Where the operation is: a chain, or a chain and a network of it. */
  at: string,
  operation: string,
  request: unknown,
  options?: CallOptions,
) => Promise<object>

/** What calls need to know. */
export type Connection = {
  base: URL
  api_key: string
  api_secret: string | CryptoKey
  fetch: typeof fetch | undefined
  clock: Clock
  timeout_ms: number
  retries: number
}

const encoder = new TextEncoder()

type AuthHeaders = Record<(typeof authHeaders)[keyof typeof authHeaders], string>

/** Makes the one function through which all operations go: sign, send, read, retry. */
export function createCall(
  connection: Connection,
  { nonces, sign }: { nonces: Nonces; sign: Sign },
): Call {
  const { base, clock, retries } = connection
  const prefix = base.pathname.replace(/\/+$/, '')

  async function attempt(
    path: string,
    nonce: string,
    body: Uint8Array<ArrayBuffer>,
    { signal, idempotency_key }: CallOptions,
  ) {
    const auth: AuthHeaders = {
      'x-api-key': connection.api_key,
      'x-api-nonce': nonce,
      'x-api-signature': await sign(nonce, 'POST', path, body),
    }
    return send({
      url: `${base.origin}${path}`,
      headers: {
        'content-type': 'application/json',
        ...auth,
        ...(idempotency_key !== undefined && { 'idempotency-key': idempotency_key }),
      },
      body,
      // Looked up at each call, so that a fetch that was replaced later counts.
      fetch: connection.fetch ?? globalThis.fetch,
      timeout_ms: connection.timeout_ms,
      signal,
    })
  }

  return async (at, operation, request = {}, options = {}) => {
    const path = `${prefix}/v1/${at}/${operation}`
    const body = encoder.encode(bodyOf(at, request))
    let followed = false
    for (let retry = 0; ; ) {
      const nonce = nonces.next()
      const answer = await attempt(path, nonce.text, body, options)
      const outcome = readAnswer(answer)
      if ('value' in outcome) return outcome.value
      const { error } = outcome
      const time = error.reason === 'CLOCK_SKEW' && !followed ? serverTime(answer) : undefined
      if (time !== undefined) {
        followed = true
        nonces.follow(nonce, time)
        continue
      }
      const hasKey = options.idempotency_key !== undefined
      const wait =
        retry < retries ? retryDelay(error, operation, retry, Math.random, hasKey) : undefined
      if (wait === undefined) throw error
      retry++
      await clock.sleep(wait, options.signal)
    }
  }
}
