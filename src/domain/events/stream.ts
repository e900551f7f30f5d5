// Event streams: where the events of an organization are, and the tokens with which browsers open them. It uses
// storage and access. Sequences have no gaps, because events are numbered like the notifications of webhooks.

import type { WalletScope } from '../../storage/wallets/tables.ts'
import { findTurn } from '../../storage/webhooks/notification-events.ts'
import {
  findStream,
  insertStream,
  resumeStream,
  type Stream,
  streamIdOf,
  touchStreams,
} from '../../storage/webhooks/streams.ts'
import type { Installation } from '../context.ts'
import { createSecret } from '../webhooks/secret.ts'

/** A stream is noted as used at most this often. */
const touchMs = 3_600_000

/**
 * The stream of an organization on a network. Its first use begins the sequence: nothing is written before. One that was
 * not used for the time of retention is paused, and resumed here.
 */
export async function openStream(
  installation: Pick<Installation, 'db' | 'ids' | 'sealer' | 'clock'>,
  scope: WalletScope,
): Promise<Stream> {
  const { db, clock } = installation
  const now = new Date(clock.now())
  const found = await findStream(db, scope)
  if (found && !found.is_paused) {
    if (now.getTime() - found.update_time.getTime() > touchMs)
      await touchStreams(db, [found.webhook_id], now)
    return found
  }
  await db.transaction().execute(async (trx) => {
    // Events that are stored and not expanded yet were there before it.
    const { next_event: first_event } = await findTurn(trx, scope)
    if (found) return await resumeStream(trx, scope, { first_event, now })
    // The secret is never used: every row of the table has one.
    const { secret_sealed } = createSecret(installation, streamIdOf(scope))
    await insertStream(trx, { ...scope, secret_sealed, first_event, create_time: now })
  })
  const stream = await findStream(db, scope)
  if (!stream) throw new Error('The event stream could not be made.')
  return stream
}
