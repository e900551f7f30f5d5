import type { Connection } from './call.ts'
import { PortolanError } from './error.ts'
import type { EventsOptions, StreamEvent } from './event.ts'
import type { Nonces } from './nonces.ts'
import { readAnswer, serverTime } from './read-answer.ts'
import type { Sign } from './sign.ts'
import { readSse } from './sse.ts'

/** Opens the event stream of an address: `c`, `base/sepolia`, or empty for all chains. */
export type OpenEvents = (
  at: string,
  options: EventsOptions & { chains?: readonly string[] },
) => AsyncGenerator<StreamEvent, void>

const firstWaitMs = 500
const lastWaitMs = 10_000
// Three heartbeats of the service: the connection is dead although nothing has closed it.
const silenceMs = 50_000

/** Makes the function that iterates over events. It connects again and resumes where it was, until it is ended. */
export function createEvents(
  connection: Connection,
  { nonces, sign }: { nonces: Nonces; sign: Sign },
): OpenEvents {
  const { base, clock, api_key } = connection
  const prefix = base.pathname.replace(/\/+$/, '')

  const connect = async (path: string, signal: AbortSignal) => {
    const nonce = nonces.next()
    const fetch = connection.fetch ?? globalThis.fetch
    const response = await fetch(`${base.origin}${path}`, {
      headers: {
        accept: 'text/event-stream',
        'x-api-key': api_key,
        'x-api-nonce': nonce.text,
        'x-api-signature': await sign(nonce.text, 'GET', path, new Uint8Array()),
      },
      redirect: 'manual',
      cache: 'no-store',
      signal,
    })
    return { nonce, response }
  }

  return async function* events(at, { after, types, chains, signal, on_interrupt }) {
    let position = after === undefined ? undefined : String(after)
    let waitMs = firstWaitMs
    let hasFollowed = false
    while (!signal?.aborted) {
      const path = `${prefix}/v1/${at === '' ? '' : `${at}/`}events${queryOf({ after: position, types, chains })}`
      const ending = new AbortController()
      const end = () => ending.abort(signal?.reason)
      signal?.addEventListener('abort', end, { once: true })
      let timer = setTimeout(end, silenceMs)
      const stayAwake = () => {
        clearTimeout(timer)
        timer = setTimeout(end, silenceMs)
      }
      try {
        const { nonce, response } = await connect(path, ending.signal)
        if (response.status === 200 && response.body) {
          hasFollowed = false
          for await (const { id, data } of readSse(response.body, stayAwake)) {
            const event = JSON.parse(data) as StreamEvent
            if (id !== undefined) position = id
            waitMs = firstWaitMs
            yield { ...event, id, sequence: event.sequence }
            if (signal?.aborted) return
          }
        } else {
          const { status, headers } = response
          const answer = { url: path, status, headers, text: await response.text() }
          const outcome = readAnswer(answer)
          const error = 'error' in outcome ? outcome.error : undefined
          const time =
            error?.reason === 'CLOCK_SKEW' && !hasFollowed ? serverTime(answer) : undefined
          if (time !== undefined) {
            hasFollowed = true
            nonces.follow(nonce, time)
            continue
          }
          if (error && !isTemporary(error)) throw error
          waitMs = Math.max(waitMs, (error?.retry_after ?? 0) * 1_000)
        }
      } catch (error) {
        if (signal?.aborted) return
        // Everything else is a connection that failed, and is made again.
        if (error instanceof PortolanError) throw error
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        ending.abort()
      }
      if (signal?.aborted) return
      on_interrupt?.()
      await clock.sleep(waitMs * (0.5 + Math.random() / 2), signal).catch(() => {})
      waitMs = Math.min(waitMs * 2, lastWaitMs)
    }
  }
}

const isTemporary = ({ status }: PortolanError): boolean => status === 429 || status >= 500

function queryOf(given: {
  after: string | undefined
  types: readonly string[] | undefined
  chains: readonly string[] | undefined
}): string {
  const query = new URLSearchParams()
  if (given.after !== undefined) query.set('after', given.after)
  if (given.types) query.set('types', given.types.join(','))
  if (given.chains) query.set('chains', given.chains.join(','))
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}
