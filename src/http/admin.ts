import { OperationError } from '../contract/errors/errors.ts'
import { invalidRequest } from '../contract/validate.ts'
import type { ProfileKind } from '../lib/profile.ts'
import { onTrustedHost } from './clients/trusted-host.ts'
import { send } from './exchange.ts'
import { get, sendJson } from './probes.ts'
import type { Route } from './server.ts'

/** What an operator asks of the service. */
export type AdminViews = {
  status(): Promise<Record<string, unknown>>
  metrics(accept: string | undefined): Promise<{ contentType: string; text: string }>
  profile(
    kind: ProfileKind,
    options: {
      seconds: number
      signal: AbortSignal
      /** The name of the process, where a service has several. */
      process?: string | undefined
    },
  ): Promise<string>
  /** Reads the configuration again; `refused` says that nothing was changed. */
  reload(): Promise<{ outcome: string }>
}

const longestSeconds = 60
const usualSeconds = 10

/** The routes of `server.admin_listen`. They need no credential: the address decides who reaches them. */
export function adminRoutes(views: AdminViews, hosts: readonly string[]): Route[] {
  let isRecording = false
  const profile = (kind: ProfileKind): Route => ({
    path: `/debug/${kind}-profile`,
    name: `/debug/${kind}-profile`,
    handle: async (exchange) => {
      // It costs time and memory, so that nothing which follows links may begin one.
      if (exchange.method !== 'POST')
        throw new OperationError('METHOD_NOT_ALLOWED', { headers: { allow: 'POST' } })
      const seconds = secondsOf(exchange.target)
      if (isRecording)
        throw new OperationError('RATE_LIMITED', {
          detail: 'A profile is being recorded; one at a time.',
          retryAfter: longestSeconds,
        })
      isRecording = true
      try {
        const process = processOf(exchange.target)
        const text = await views.profile(kind, { seconds, signal: exchange.signal, process })
        const name = `portolan-${process ?? globalThis.process.pid}.${kind}profile`
        const headers = {
          'content-type': 'application/json',
          'content-disposition': `attachment; filename="${name}"`,
          'cache-control': 'no-store',
        }
        send(exchange, 200, headers, text)
      } finally {
        isRecording = false
      }
    },
  })
  const routes: Route[] = [
    get('/status', async (exchange) => sendJson(exchange, 200, await views.status())),
    get('/metrics', async (exchange) => {
      const { contentType, text } = await views.metrics(exchange.request.headers.accept)
      send(exchange, 200, { 'content-type': contentType, 'cache-control': 'no-store' }, text)
    }),
    {
      path: '/reload',
      name: '/reload',
      handle: async (exchange) => {
        if (exchange.method !== 'POST')
          throw new OperationError('METHOD_NOT_ALLOWED', { headers: { allow: 'POST' } })
        const answer = await views.reload()
        sendJson(exchange, answer.outcome === 'refused' ? 422 : 200, answer)
      },
    },
    profile('cpu'),
    profile('heap'),
  ]
  return onTrustedHost(routes, hosts)
}

// Names of processes are simple: the answer's headers repeat the name.
function processOf(target: string): string | undefined {
  const given = new URL(target, 'http://localhost').searchParams.get('process')
  return given !== null && /^[a-z0-9-]{1,40}$/.test(given) ? given : undefined
}

function secondsOf(target: string): number {
  const given = new URL(target, 'http://localhost').searchParams.get('seconds')
  if (given === null) return usualSeconds
  const seconds = /^\d{1,3}$/.test(given) ? Number(given) : 0
  if (seconds >= 1 && seconds <= longestSeconds) return seconds
  const detail = `Must be a whole number from 1 to ${longestSeconds}.`
  throw invalidRequest([{ field: 'seconds', reason: 'OUT_OF_RANGE', detail }])
}
