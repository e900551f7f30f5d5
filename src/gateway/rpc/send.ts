import type { Pool } from '../../chains/evm/pool/pool-types.ts'
import type { Principal } from '../../domain/access/principal.ts'
import type { Progress } from '../cache/progress.ts'
import type { Dispatch } from './answer.ts'
import { answered, failed, refused } from './answer.ts'
import { type Refusal, refuse } from './rpc-error.ts'

const internal = refuse('INTERNAL')

/** Makes the way of signed transactions: to every healthy node, never kept, never joined. */
export function createSender(options: {
  pool: Pool
  timeoutMs: number
  progress: Progress
  onSent?(hash: string): void
  /** Why a key may not send; undefined where it may. */
  mayNotSend?(principal: Principal): Refusal | undefined
}): Dispatch {
  const { pool, timeoutMs, progress, onSent, mayNotSend } = options
  return (_method, call, session, done) => {
    const denied = mayNotSend?.(session.principal)
    if (denied) return done(refused(denied))
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
