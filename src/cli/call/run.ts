import { createClient } from '../../../client/src/client.ts'
import { PortolanError } from '../../../client/src/error.ts'
import { CliError, usageError } from '../cli-error.ts'
import { withFields } from '../explain.ts'
import { printJson, type Shell } from '../shell.ts'
import { findCall } from './find-entry.ts'
import { readRequest } from './read-request.ts'
import { chooseTarget, type TargetOptions } from './target.ts'

/** What the command line names. */
export type Called = { service?: string; operation?: string; request?: string }

type Caller = (request: object, options: { idempotency_key?: string }) => Promise<object>

/** Signs and sends one request, and prints the answer. */
export async function runCall(
  shell: Shell,
  called: Called,
  options: TargetOptions & { idempotencyKey?: string },
): Promise<void> {
  const { at, entry } = findCall(called.service, called.operation)
  const request = await readRequest(shell, called.request)
  const target = await chooseTarget(shell, options, at)
  const client = clientOf(target)
  // The client takes chain and network apart; addresses of the API do the same.
  const [chain = '', network] = at.split('/')
  const operations = (at === 'admin'
    ? client.admin
    : client.chain(chain, network === undefined ? {} : { network })) as unknown as Record<
    string,
    Caller
  >
  const { idempotencyKey: idempotency_key } = options
  const key = idempotency_key === undefined ? {} : { idempotency_key }
  try {
    printJson(shell, await operations[entry.name]?.(request, key))
  } catch (error) {
    if (error instanceof PortolanError)
      throw new CliError(problemText(error, target.base_url), { cause: error })
    throw error
  }
}

function clientOf(target: Parameters<typeof createClient>[0]) {
  try {
    return createClient(target)
  } catch (error) {
    throw usageError(`${(error as Error).message}.`)
  }
}

/** A failure of the service for people: what, which fields, and where to read on. */
export function problemText(error: PortolanError, base_url: string): string {
  // No answer came at all: there is no reason, and no page about it.
  if (error.status === 0) return withFields(error.detail, error.errors)
  const retry = error.retry_after === undefined ? [] : [`  Try again in ${error.retry_after} s.`]
  return [
    withFields(`${error.reason} (${error.status}): ${error.detail}`, error.errors),
    ...retry,
    ...(error.reason === 'UNEXPECTED_ANSWER' ? [] : [`  ${base_url}/docs/errors/${error.reason}`]),
    ...(error.request_id === undefined ? [] : [`  request ${error.request_id}`]),
  ].join('\n')
}
