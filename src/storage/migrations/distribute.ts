// Citus: the transfers of organizations on several machines. All other tables stay on the coordinator
// (docs/scale-database.md says why). Statements on transfers of an organization name it, so that they go to its machine.

import { type Kysely, sql } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: the tables of the extension have no types
type AnyDb = Kysely<any>

/** The tables whose rows Citus distributes, by `organization_id`. */
export const distributedTables = ['transfer'] as const

/** Where transfers are: on the server of the database, or distributed; undefined where the server has no Citus. */
export const distributionOf = async (db: AnyDb): Promise<'local' | 'distributed' | undefined> => {
  const { rows: extension } = await sql`
    select 1 from pg_extension where extname = 'citus'`.execute(db)
  if (extension.length === 0) return undefined
  const { rows } = await sql`
    select 1 from pg_dist_partition where logicalrelid = 'transfer'::regclass`.execute(db)
  return rows.length > 0 ? 'distributed' : 'local'
}

/** Distributes the transfers of a migrated database. Nothing can be stored meanwhile: the rows that are there are copied. */
export const distributeTransfers = async (db: AnyDb): Promise<void> =>
  await db.transaction().execute(async (trx) => {
    await sql`set local statement_timeout = 0`.execute(trx)
    // Citus refuses a unique key without the column that the rows are distributed by. It comes last: lists go along the others.
    await sql`alter table transfer drop constraint transfer_pkey`.execute(trx)
    await sql`
      alter table transfer add primary key
        (wallet_id, block_time, block_number, ordinal, side, organization_id)`.execute(trx)
    await sql`select create_distributed_table('transfer', 'organization_id')`.execute(trx)
  })
