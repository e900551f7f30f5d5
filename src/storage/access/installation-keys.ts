import type { Db } from '../pg/database.ts'

/** A sealed key of the installation; undefined when it was not made yet. */
export const findInstallationKey = async (db: Db, name: string): Promise<Buffer | undefined> => {
  const row = await db
    .selectFrom('installation_key')
    .select('key_sealed')
    .where('name', '=', name)
    .executeTakeFirst()
  return row?.key_sealed
}

/** Stores a sealed key unless there is one: of several processes that begin together one makes it. */
export const insertInstallationKey = async (
  db: Db,
  key: { name: string; key_sealed: Buffer; create_time: Date },
): Promise<void> => {
  // Without an update on conflict: the first process wins, and all others read its key.
  await db
    .insertInto('installation_key')
    .values(key)
    .onConflict((on) => on.doNothing())
    .execute()
}
