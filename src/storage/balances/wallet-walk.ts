// A walk along the addresses of all wallets, page by page, as the comparison with the chain takes it. It has no join: with one
// to the wallets of a network, all addresses that were left were sorted for every page, depending on the statistics of tables.
// Addresses of other networks are passed too, and are cheap; a page has a bound of addresses, because any number of them may be
// of other networks or have no balance.

import { type RawBuilder, sql } from 'kysely'

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

/**
 * `ended` of a statement with the rows of a page as `page`: where a page ends that has found less than its limit in so many
 * addresses, without a row where there are not as many. Not a statement of its own: it would see addresses removed since the
 * page, and pass as many others. Materialized, so that the limit is compared once and not for each row of the page.
 */
export const endOfPage = ({
  after,
  limit,
  most_addresses,
}: {
  after: WalkPosition | undefined
  limit: number
  most_addresses: number
}): RawBuilder<unknown> => sql`
  ended as materialized (
    select wallet_id as end_wallet_id, address as end_address
    from (${addressesBeyond(after)} offset ${most_addresses - 1} limit 1) t
    where (select count(*) from page) < ${limit})`

type End = { end_wallet_id: string | null; end_address: Buffer | null }

/** A row of a page with its end; or the end alone, where the page has no row. */
export type RowWithEnd<row> = (row | { wallet_id: null }) & End

/** The rows of a page, and where it ends. */
export const splitEnd = <row extends { wallet_id: string }>(
  all: readonly RowWithEnd<row>[],
): { rows: row[]; end: WalkPosition | undefined } => {
  const { end_wallet_id: wallet_id, end_address: address } = all[0]!
  return {
    rows: all.flatMap(({ end_wallet_id, end_address, ...row }) =>
      row.wallet_id === null ? [] : [row as unknown as row],
    ),
    end: wallet_id && address ? { wallet_id, address, asset_id: null } : undefined,
  }
}
