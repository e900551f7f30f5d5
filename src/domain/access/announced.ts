import { notifyChange } from '../../storage/pg/changes.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { AccessChange } from '../../storage/redis/changes.ts'
import type { Installation } from '../context.ts'

/** Announces a change of access when and if the transaction commits. */
export type Announce = (change: AccessChange) => Promise<void>

/**
 * Changes in one transaction who may call, and announces it: both or neither. What is gone unannounced stays in the memory of
 * the gateways for half a minute, and a repeated request would not find it any more. It is published once more behind the
 * commit, before the caller has the answer, because a database that dies then announces nothing.
 */
export async function announced<result>(
  { db, publishChange }: Pick<Installation, 'db' | 'publishChange'>,
  act: (trx: Db, announce: Announce) => Promise<result>,
): Promise<result> {
  const changes: AccessChange[] = []
  try {
    return await db.transaction().execute((trx) =>
      act(trx, async (change) => {
        await notifyChange(trx, change)
        changes.push(change)
      }),
    )
  } finally {
    // After an error, too: the commit may have happened, and to look once more does no harm.
    if (publishChange) await Promise.allSettled(changes.map(publishChange))
  }
}
