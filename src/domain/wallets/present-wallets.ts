import { maxListedAddresses } from '../../contract/limits.ts'
import type { WalletAnswer } from '../../contract/operations/calls.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { Db } from '../../storage/pg/database.ts'
import { type ListedAddress, listFirstAddresses } from '../../storage/wallets/addresses.ts'
import type { WalletRow } from '../../storage/wallets/tables.ts'
import type { ReadScope } from './scope.ts'

/**
 * Makes wallet records. A wallet with more addresses than fit shows the first ones of ListAddresses,
 * any other one all of them in the order of their registration.
 */
export async function presentWallets(
  db: Db,
  { family }: Pick<ReadScope, 'family'>,
  rows: readonly WalletRow[],
  perWallet: number = maxListedAddresses,
): Promise<WalletAnswer<'ListWallets'>['wallets']> {
  const limit = Math.min(perWallet, maxListedAddresses)
  const addresses = new Map<string, ListedAddress[]>(rows.map(({ wallet_id }) => [wallet_id, []]))
  const wallet_ids = rows.map(({ wallet_id }) => wallet_id)
  for (const row of await listFirstAddresses(db, wallet_ids, limit))
    addresses.get(row.wallet_id)?.push(row)
  return rows.map((row) => {
    const found = addresses.get(row.wallet_id) ?? []
    const isTruncated = row.address_count > limit
    const shown = isTruncated ? found : found.toSorted(byRegistration)
    const { formatUserFriendly } = family
    const texts = shown.map(({ address }) => family.formatAddress(address))
    return {
      wallet_id: row.wallet_id,
      name: row.name,
      addresses: texts,
      address_count: row.address_count,
      addresses_truncated: isTruncated,
      create_time: toTimestamp(row.create_time),
      update_time: toTimestamp(row.update_time),
      confirmation: row.confirmation,
      ...(formatUserFriendly && {
        address_mapping: shown.map(({ address }, at) => ({
          address: texts[at]!,
          user_friendly_address: formatUserFriendly(address),
        })),
      }),
    }
  })
}

// The rows are in the order of their bytes, and sorting keeps it among those of one time.
const byRegistration = (a: ListedAddress, b: ListedAddress): number =>
  a.create_time.getTime() - b.create_time.getTime()
