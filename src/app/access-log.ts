import { operationAt } from '../http/operations.ts'
import type { Finished } from '../http/server.ts'
import type { Log } from '../lib/log.ts'
import type { Metrics } from './metrics/metrics.ts'

/** Counts every finished exchange, and logs it where there is a log for that. */
export const createOnFinished =
  (metrics: Pick<Metrics, 'finished'>, log: Log | undefined) =>
  (finished: Finished): void => {
    metrics.finished(finished)
    if (!log) return
    const { path, ...shown } = finished
    // Other paths than those of operations may hold a key.
    log.debug({ ...shown, ...(operationAt(path) && { path }) }, 'request finished')
  }
