import type { Db } from '../../storage/pg/database.ts'
import { ensurePartitionsBetween } from '../../storage/pg/partitions.ts'

const dayMs = 86_400_000

/** Makes sure that transfers of these times have a place; asks the database once per month only. */
export const createMonths = (db: Db): ((times: readonly number[]) => Promise<void>) => {
  const known = new Set<string>()
  return async (times) => {
    // A day around, because a record may have a time of its own beside the block's.
    const from = new Date(Math.min(...times) - dayMs)
    const to = new Date(Math.max(...times) + dayMs)
    const key = `${from.toISOString().slice(0, 7)}/${to.toISOString().slice(0, 7)}`
    if (known.has(key)) return
    await ensurePartitionsBetween(db, from, to)
    known.add(key)
  }
}
