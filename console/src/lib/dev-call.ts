import { PortolanError } from '@portolan/client'

type ProblemBody = {
  code?: string
  reason?: string
  detail?: string
  request_id?: string
  errors?: { field: string; reason: string; detail: string }[]
}

/** Calls a route of the embedded mode. It takes no credential from this machine. */
export async function devCall(
  baseUrl: string,
  name: string,
  body: object,
): Promise<Record<string, unknown>> {
  const answer = await fetch(`${baseUrl}/dev/v1/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  })
  const parsed: unknown = await answer.json().catch(() => ({}))
  if (answer.ok) return parsed as Record<string, unknown>
  const problem = parsed as ProblemBody
  throw new PortolanError({
    status: answer.status,
    code: problem.code ?? 'UNKNOWN',
    reason: problem.reason ?? 'UNEXPECTED_ANSWER',
    detail: problem.detail ?? 'These calls exist in the embedded mode only.',
    request_id: problem.request_id,
    errors: problem.errors ?? [],
  })
}
