import type { Pool } from '../chains/upstream/pool-types.ts'
import { answered, failed, refused } from './answer.ts'
import type { Dispatch } from './dispatch.ts'
import type { Progress } from './progress.ts'
import { refuse } from './rpc-error.ts'

const internal = refuse('INTERNAL')

/** Makes the way of signed transactions: to every healthy node, never kept, never joined. */
export function createSender(options: {
  pool: Pool
  timeoutMs: number
  progress: Progress
  onSent?(hash: string): void
}): Dispatch {
  const { pool, timeoutMs, progress, onSent } = options
  return (_method, call, session, done) => {
    progress.wrote(session)
    pool.broadcast(`"${String(call.args[0])}"`, timeoutMs).then(
      (outcome) => {
        progress.wrote(session)
        if ('failure' in outcome) return done(failed(outcome.failure))
        if (outcome.ok) {
          onSent?.(outcome.result.slice(1, -1))
          return done(answered(outcome.result))
        }
        done({ ...answered(outcome.error), ok: false })
      },
      () => done(refused(internal)),
    )
  }
}
