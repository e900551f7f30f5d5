import { operationAt } from '../http/operations.ts'
import type { Finished } from '../http/server.ts'
import type { Log } from '../lib/log.ts'

/** Logs a finished exchange. Only the path of an operation is shown: others may hold a key. */
export function logFinished(log: Log, { path, ...finished }: Finished): void {
  log.debug({ ...finished, ...(operationAt(path) && { path }) }, 'request finished')
}
