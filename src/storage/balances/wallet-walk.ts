// A walk along the addresses of all wallets, page by page, as the comparison with the chain takes it. It has no join: with one
// to the wallets of a network, all addresses that were left were sorted for every page, depending on the statistics of tables.
// Addresses of other networks are passed too, and are cheap; a page has a bound of addresses, because any number of them may be
// of other networks or have no balance.

import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** The last pair that a walk has passed; without an asset all of the address. */
export type WalkPosition = { wallet_id: string; address: Buffer; asset_id: string | null }

/** The bound of addresses of one page, if nothing else is asked for: about 50 ms where none has a balance. */
export const addressesPerPage = 20_000

/** The addresses of all networks behind a position, in the order of the walk. */
export const addressesBeyond = (after: WalkPosition | undefined): RawBuilder<unknown> => sql`
  select network_id, wallet_id, address, organization_id from wallet_address
  ${
    after
      ? sql`where (wallet_id, address) ${sql.raw(after.asset_id === null ? '>' : '>=')}
          (${after.wallet_id}::uuid, ${after.address}::bytea)`
      : sql``
  }
  order by wallet_id, address`

/** Where a page ends that has found too little in so many addresses; undefined where there are not as many. */
export const endOfAddresses = async (
  db: Db,
  { after, most_addresses }: { after: WalkPosition | undefined; most_addresses: number },
): Promise<WalkPosition | undefined> => {
  const { rows } = await sql<Omit<WalkPosition, 'asset_id'>>`
    select wallet_id, address from (${addressesBeyond(after)} offset ${most_addresses - 1} limit 1) t`.execute(
    db,
  )
  return rows[0] && { ...rows[0], asset_id: null }
}
