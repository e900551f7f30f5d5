import { sql } from 'kysely'
import type { AssetKey } from '../../contract/records/assets.ts'
import type { Db } from '../pg/database.ts'

/** The kind of the jobs that look for the description of an item. */
export const metadataJobKind = 'token_metadata'

/** Queues metadata jobs for items without one. The job has the id of the asset. */
export const enqueueMetadata = async (
  trx: Db,
  { network_id, asset_ids }: { network_id: number; asset_ids: readonly string[] },
): Promise<void> => {
  if (asset_ids.length === 0) return
  // In one order, because several trackers may queue the same items.
  await sql`
    insert into job (job_id, kind, network_id, payload, attempt_count, next_attempt_time, create_time,
      update_time)
    select asset_id, ${metadataJobKind}, ${network_id}::int2, '{}', 0, clock_timestamp(),
      clock_timestamp(), clock_timestamp()
    from asset where asset_id = any(${asset_ids as string[]}::uuid[]) and metadata_time is null
    order by asset_id
    on conflict do nothing`.execute(trx)
}

/** An item with what is known of its description. */
export const findItem = async (
  db: Db,
  asset_id: string,
): Promise<(AssetKey & { token_uri: string | null }) | undefined> =>
  await db
    .selectFrom('asset')
    .select(['asset_type', 'contract_address', 'token_id', 'token_uri'])
    .where('asset_id', '=', asset_id)
    .executeTakeFirst()

/** Stores the metadata of an item; with a time it is not fetched again. */
export const setTokenMetadata = async (
  db: Db,
  asset_id: string,
  found: { token_uri?: string | null; token_data?: string; metadata_time?: Date },
): Promise<void> => {
  await db.updateTable('asset').set(found).where('asset_id', '=', asset_id).execute()
}
