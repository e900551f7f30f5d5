// Registration and removal of addresses. Removal takes the cursor exclusively, because a block or a balance that is being
// stored would leave rows behind. Removing named addresses that the wallet does not have takes no lock, so a caller cannot
// delay the tracker by repeating it.

import { OperationError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { JobRow } from '../../storage/tracking/jobs.ts'
import { findOwners, insertAddresses, pageAddresses } from '../../storage/wallets/addresses.ts'
import { type RemovalRest, removeAddresses } from '../../storage/wallets/removing.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import { touchWallet } from '../../storage/wallets/wallets.ts'
import { inBulkTurn } from '../bulk.ts'
import type { Context, WalletHandler } from '../context.ts'
import { inTrackedPages, pageRows } from '../in-pages.ts'
import { makePage, readPage } from '../pages.ts'
import { checkUse } from '../quotas.ts'
import { type AddressBatch, readAddress, readAddresses } from './address-fields.ts'
import { coverFirst, coverRegistered } from './cover.ts'
import { importNative } from './refresh.ts'
import { type ChainScope, chainScope, findOwnWallet, getWallet, readScope } from './scope.ts'

/** Tracks an address; where the wallet has it already, nothing changes. */
export const RegisterAddress: WalletHandler<'RegisterAddress'> = async (context, request) => {
  const scope = await chainScope(context)
  const { wallet_id } = await getWallet(context, scope, request.wallet_id)
  const address = readAddress(scope.family, request.address)
  const job = await context.db.transaction().execute(async (db) => {
    const cover = await registerIn({ ...context, db }, scope, { wallet_id, addresses: [address] })
    await context.record?.(db, {})
    return cover
  })
  // After the commit: the first page asks nodes, which no transaction may wait for.
  await coverFirst(context, scope, job)
  if (request.import_asset) await importNative(context, scope, { wallet_id, address })
  return {}
}

/** Tracks up to 1000 addresses, all or none. */
export const BatchRegisterAddresses: WalletHandler<'BatchRegisterAddresses'> = async (
  context,
  request,
) => {
  const scope = await chainScope(context)
  const { wallet_id } = await getWallet(context, scope, request.wallet_id)
  const batch = readAddresses(scope.family, request.addresses)
  const job = await inBulkTurn(context, async (db) => {
    const cover = await registerIn({ ...context, db }, scope, { wallet_id, ...batch })
    await context.record?.(db, {})
    return cover
  })
  await coverFirst(context, scope, job)
  return {}
}

/** Stops tracking an address. Repeating it changes nothing. */
export const RemoveAddress: WalletHandler<'RemoveAddress'> = async (context, request) => {
  const scope = await readScope(context)
  const addresses = [readAddress(scope.family, request.address)]
  await removeFrom(context, scope, { wallet_id: request.wallet_id, addresses })
  return {}
}

/** Stops tracking some addresses, or every address of the wallet. Repeating it changes nothing. */
export const BatchRemoveAddresses: WalletHandler<'BatchRemoveAddresses'> = async (
  context,
  request,
) => {
  const scope = await readScope(context)
  if (!request.remove_all && !request.addresses)
    throw invalidRequest([
      {
        field: 'addresses',
        reason: 'REQUIRED',
        detail: 'Is required, unless remove_all is true.',
      },
    ])
  const { wallet_id } = request
  const { addresses } = readAddresses(scope.family, request.addresses ?? [])
  await removeFrom(context, scope, request.remove_all ? { wallet_id } : { wallet_id, addresses })
  return {}
}

/** Pages through the addresses of a wallet, in the order of their bytes. */
export const ListAddresses: WalletHandler<'ListAddresses'> = async (context, request) => {
  const scope = await readScope(context)
  const { limit, after } = readPage<string>(context, request)
  const { wallet_id } = await getWallet(context, scope, request.wallet_id)
  const rows = await pageAddresses(context.db, wallet_id, {
    limit: limit + 1,
    after: after === undefined ? undefined : Buffer.from(after, 'hex'),
  })
  const { items, pagination } = makePage(context, request, rows, ({ address }) =>
    address.toString('hex'),
  )
  const addresses = items.map(({ address, create_time }) => ({
    address: scope.family.formatAddress(address),
    user_friendly_address: scope.family.formatUserFriendly?.(address),
    create_time: toTimestamp(create_time),
  }))
  return { addresses, pagination }
}

type Registration = { wallet_id: string; addresses: Buffer[] } & Partial<AddressBatch>

/**
 * Registers addresses inside a transaction; one that another wallet has undoes all of it. Gives the job
 * that tracks the tokens of rules at them, where there are any.
 */
export async function registerIn(
  { db, clock, quotas }: Pick<Context, 'db' | 'clock' | 'quotas'>,
  scope: ChainScope,
  { wallet_id, addresses, errorsFor }: Registration,
): Promise<JobRow | undefined> {
  const now = new Date(clock.now())
  const added = await insertAddresses(db, scope, { wallet_id, addresses, create_time: now })
  // Removed since it was looked up: what would be added to it could never be removed.
  if (added > 0) {
    const use = await touchWallet(db, wallet_id, { gained: added, update_time: now })
    if (!use) throw new OperationError('WALLET_NOT_FOUND')
    checkUse({ quotas }, 'QUOTA_ADDRESSES', { use, gained: added })
  }
  // The usual case: all are new, and nothing has to be looked up.
  if (added === addresses.length)
    return await coverRegistered({ db, clock }, scope, { wallet_id, addresses })
  const owners = await findOwners(db, scope, addresses)
  // Addresses that this wallet had before are no error: repeating a registration changes nothing.
  const taken = owners.filter((owner) => owner.wallet_id !== wallet_id)
  if (taken.length === 0)
    return await coverRegistered({ db, clock }, scope, { wallet_id, addresses })
  const bad = taken.map(({ address }) => address)
  const detail = 'Another wallet of the organization has this address.'
  throw new OperationError('ADDRESS_IN_OTHER_WALLET', {
    errors: errorsFor?.(bad, 'ADDRESS_IN_OTHER_WALLET', detail) ?? [
      { field: 'address', reason: 'ADDRESS_IN_OTHER_WALLET', detail },
    ],
  })
}

/** Removes existing addresses. Nothing is locked for others: any caller could request that at any rate. */
async function removeFrom(
  context: Context,
  scope: WalletScope,
  request: { wallet_id: string; addresses?: Buffer[] },
): Promise<void> {
  const { db, clock } = context
  const wallet = await findOwnWallet(context, scope, request.wallet_id)
  if (!wallet) return
  const { wallet_id } = wallet
  const { addresses } = request
  const owners = addresses && (await findOwners(db, scope, addresses))
  // Looked up without a lock: a removal that changes nothing must not wait for blocks.
  if (owners && !owners.some((owner) => owner.wallet_id === wallet_id)) return
  const listed = addresses?.toSorted(Buffer.compare)
  // The cursor blocks concurrent balance reads and reorganizations: rows that they store would remain.
  await inTrackedPages<RemovalPlace>(context, scope.network_id, async (trx, _head, at) => {
    const { count, next } = await removePage(trx, scope, { wallet_id, at, listed })
    const update_time = new Date(clock.now())
    if (count > 0) await touchWallet(trx, wallet_id, { gained: -count, update_time })
    return next
  })
}

/** Where the pages of a removal continue: behind an address, and within those that follow it. */
export type RemovalPlace = { after?: Buffer | undefined; rest?: RemovalRest | undefined }

/**
 * Removes a page of the listed addresses of a wallet, or of all; answers where to continue if more may follow. Without `after`,
 * each page would pass over what the pages before it removed: 300,000 addresses took 14 s instead of 7.5 s.
 */
export async function removePage(
  trx: Db,
  scope: WalletScope,
  page: { wallet_id: string; at: RemovalPlace | undefined; listed?: Buffer[] | undefined },
): Promise<{ count: number; next: RemovalPlace | undefined }> {
  const { wallet_id, at: { after, rest: begun } = {}, listed } = page
  const addresses =
    listed ??
    (await pageAddresses(trx, wallet_id, { after, limit: pageRows })).map(({ address }) => address)
  const { count, rest } = await removeAddresses(trx, scope, {
    ...{ wallet_id, addresses, rest: begun, limit: pageRows },
  })
  if (rest) {
    const before = addresses[addresses.findIndex((one) => one.equals(rest.address)) - 1]
    return { count, next: { after: before ?? after, rest } }
  }
  const isLast = listed || addresses.length < pageRows
  return { count, next: isLast ? undefined : { after: addresses.at(-1) } }
}
