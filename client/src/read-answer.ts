import type { FieldError } from './contract.ts'
import { PortolanError } from './error.ts'
import { parseJson } from './parse.ts'
import type { Answer } from './send.ts'

type Problem = {
  detail: string
  code: string
  reason: string
  request_id?: string
  errors?: FieldError[]
  server_time?: string | number
}

/** What an answer means: the JSON object of a success, or the failure. */
export function readAnswer(answer: Answer): { value: object } | { error: PortolanError } {
  const value = parseObject(answer.text)
  if (answer.status === 200 && value) return { value }
  return { error: isProblem(value) ? fromProblem(answer, value) : unexpected(answer) }
}

/** The server's time in milliseconds, from a CLOCK_SKEW answer; undefined where it gives none. */
export function serverTime(answer: Answer): number | undefined {
  const stated = (parseObject(answer.text) as Partial<Problem> | undefined)?.server_time
  const time = stated ?? answer.headers.get('date') ?? ''
  const ms = /^\d+$/.test(String(time)) ? Number(time) : Date.parse(String(time))
  return Number.isFinite(ms) ? ms : undefined
}

const fromProblem = (answer: Answer, problem: Problem) =>
  new PortolanError({
    status: answer.status,
    code: problem.code,
    reason: problem.reason,
    detail: problem.detail,
    request_id: problem.request_id ?? requestId(answer),
    errors: problem.errors ?? [],
    retry_after: retryAfter(answer),
  })

/** Something in between answered: a proxy's error page, a login page, a redirect, or nothing. */
const unexpected = (answer: Answer) =>
  new PortolanError({
    status: answer.status,
    code: codes[answer.status] ?? 'UNKNOWN',
    reason: 'UNEXPECTED_ANSWER',
    detail: `${describe(answer)} Is base_url right, or did a proxy answer?`,
    request_id: requestId(answer),
    retry_after: retryAfter(answer),
  })

const codes: Record<number, string> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

function describe({ url, status, headers, text }: Answer): string {
  const location = headers.get('location')
  if (location) return `${url} redirects to ${location} (HTTP ${status}).`
  const body = text.trim().replace(/\s+/g, ' ')
  if (body === '') return `${url} answered HTTP ${status} without a body.`
  const type = headers.get('content-type')?.split(';')[0] ?? 'no content type'
  const start = body.length > 100 ? `${body.slice(0, 100)}…` : body
  return `${url} answered HTTP ${status} with ${type} instead of JSON of the service: ${start}`
}

const requestId = (answer: Answer) => answer.headers.get('x-request-id') ?? undefined

/** Retry-After is seconds or an HTTP date (RFC 9110 10.2.3). */
function retryAfter({ headers }: Answer): number | undefined {
  const value = headers.get('retry-after')
  if (value === null) return undefined
  if (/^\d+$/.test(value)) return Number(value)
  const base = Date.parse(headers.get('date') ?? '') || Date.now()
  const seconds = (Date.parse(value) - base) / 1000
  return Number.isFinite(seconds) ? Math.max(0, Math.ceil(seconds)) : undefined
}

function parseObject(text: string): object | undefined {
  try {
    const value = parseJson(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

const isProblem = (value: object | undefined): value is Problem => {
  const { code, reason, detail } = (value ?? {}) as Partial<Problem>
  return typeof code === 'string' && typeof reason === 'string' && typeof detail === 'string'
}
