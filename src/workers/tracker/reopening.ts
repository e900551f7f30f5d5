// When all balances are read again because of gaps. A walk through them is expensive, and comparisons with the chain wait for
// it, so they follow each other with a pause. What waits meanwhile is in the rows of the gaps (`reopen_time`).

import { isReopening, reopenBehindGap, wasReopenedSince } from '../../storage/balances/reopening.ts'
import type { Db } from '../../storage/pg/database.ts'
import { lockCursor } from '../../storage/tracking/blocks.ts'
import { isReopenDue, setReopened } from '../../storage/tracking/gaps.ts'
import type { TrackerTools } from './tools.ts'

// A third party that can make blocks incomplete must not cause a read of every balance for each of them. Counted from the end
// of the last one, so that balances are also compared with the chain, which waits meanwhile.
const reopenPauseMs = 600_000

const pauseBefore = (now: Date): Date => new Date(now.getTime() - reopenPauseMs)

type At = { network_id: number; block_number: number; now: Date }

/**
 * Reads all balances again behind a gap, from the first block on that there is again. Where that is under way, `reopenLate` does
 * it.
 */
export async function reopenAfterGap(trx: Db, at: At): Promise<void> {
  const { network_id, block_number, now } = at
  if (await reopenBehindGap(trx, { ...at, since: pauseBefore(now) }))
    await setReopened(trx, { network_id, block_number, now })
}

/** The same behind blocks of which not everything is known; also later where that was done shortly before. */
export async function reopenUnlessLately(trx: Db, at: At): Promise<void> {
  if (!(await wasReopenedSince(trx, at.network_id, pauseBefore(at.now))))
    await reopenAfterGap(trx, at)
}

/** Reads all balances again because of gaps for which that was put off. */
export async function reopenLate({
  db,
  clock,
  network_id,
}: Pick<TrackerTools, 'db' | 'clock' | 'network_id'>): Promise<void> {
  const now = new Date(clock.now())
  const isDue = async (trx: Db): Promise<boolean> =>
    (await isReopenDue(trx, network_id, pauseBefore(now))) &&
    !(await isReopening(trx, network_id)) &&
    !(await wasReopenedSince(trx, network_id, pauseBefore(now)))
  // Without the lock first: blocks wait for it, and mostly there is nothing to do for minutes.
  if (!(await isDue(db))) return
  await db.transaction().execute(async (trx) => {
    const cursor = await lockCursor(trx, network_id)
    if (cursor && (await isDue(trx))) await reopenAfterGap(trx, { ...cursor, now })
  })
}
