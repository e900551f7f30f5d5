// Event streams: where the events of an organization are, and the tokens with which browsers open them. It uses
// storage and access. Sequences have no gaps, because events are numbered like the notifications of webhooks.

import type { WalletScope } from '../../storage/wallets/tables.ts'
import { findTurn } from '../../storage/webhooks/notification-events.ts'
import {
  findStream,
  insertStream,
  type Stream,
  streamIdOf,
} from '../../storage/webhooks/streams.ts'
import type { Installation } from '../context.ts'
import { createSecret } from '../webhooks/secret.ts'

/** The stream of an organization on a network. Its first use begins the sequence: nothing is written before. */
export async function openStream(
  installation: Pick<Installation, 'db' | 'ids' | 'sealer' | 'clock'>,
  scope: WalletScope,
): Promise<Stream> {
  const { db, clock } = installation
  const found = await findStream(db, scope)
  if (found) return found
  await db.transaction().execute(async (trx) =>
    insertStream(trx, {
      ...scope,
      // Never used: every row of the table has one.
      secret_sealed: createSecret(installation, streamIdOf(scope)).secret_sealed,
      // Events that are stored and not expanded yet were there before it.
      first_event: (await findTurn(trx, scope)).next_event,
      create_time: new Date(clock.now()),
    }),
  )
  const stream = await findStream(db, scope)
  if (!stream) throw new Error('The event stream could not be made.')
  return stream
}
