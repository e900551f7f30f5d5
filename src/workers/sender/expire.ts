import { moveTransaction } from '../../domain/transactions/move.ts'
import { withTransaction } from '../../domain/transactions/scope.ts'
import { listUnsigned } from '../../storage/transactions/open.ts'
import type { SenderTools } from './look-after.ts'

const rowsPerRound = 100
const hourMs = 3_600_000

/**
 * Cancels what was created and never signed, so that it does not keep its nonce for ever. Says whether
 * more is left.
 */
export async function expireUnsigned(
  tools: Pick<SenderTools, 'db' | 'clock' | 'log' | 'network_id'>,
  expiryMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { db, clock, log, network_id } = tools
  const before = new Date(clock.now() - expiryMs)
  const rows = await listUnsigned(db, { network_id, before, limit: rowsPerRound })
  const last_error = `Canceled: no signature came within ${Math.round(expiryMs / hourMs)} hours.`
  let expired = 0
  for (const { organization_id, transaction_id } of rows) {
    if (signal.aborted) return false
    const scope = { organization_id, network_id }
    try {
      await withTransaction(tools, scope, transaction_id, async (trx, row, now) =>
        // Signed or canceled since it was listed.
        row.transaction_state === 'TRANSACTION_STATE_CREATED'
          ? await moveTransaction(trx, row, { event: 'expire', now, change: { last_error } })
          : row,
      )
      expired++
    } catch (error) {
      // One that fails must not keep the sender from its other work.
      log.warn({ err: error, transaction_id }, 'expiring transactions failed')
    }
  }
  if (expired > 0) log.info({ network_id, count: expired }, 'unsigned transactions expired')
  return expired === rowsPerRound
}
