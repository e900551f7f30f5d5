import { sql } from 'kysely'
import type { AssetKey } from '../../contract/records/assets.ts'
import type { Db } from '../pg/database.ts'

/** The kind of the jobs that look for the description of an item. */
export const metadataJobKind = 'token_metadata'

/**
 * Queues metadata jobs for items without one. The job has the id of the asset. It takes the turns of an organization that has
 * the item: with the turns of none, those of an organization with thousands of items would keep all others waiting.
 */
export const enqueueMetadata = async (
  trx: Db,
  network_id: number,
  items: readonly { asset_id: string; organization_id: string | null }[],
): Promise<void> => {
  if (items.length === 0) return
  // In one order, because several trackers may queue the same items.
  await sql`
    insert into job (job_id, kind, organization_id, network_id, payload, attempt_count,
      next_attempt_time, create_time, update_time)
    select a.asset_id, ${metadataJobKind}, i.organization_id, ${network_id}::int2, '{}', 0,
      clock_timestamp(), clock_timestamp(), clock_timestamp()
    from unnest(${items.map(({ asset_id }) => asset_id)}::uuid[],
        ${items.map(({ organization_id }) => organization_id)}::uuid[]) i (asset_id, organization_id)
      join asset a on a.asset_id = i.asset_id
    where a.metadata_time is null
    order by a.asset_id
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
