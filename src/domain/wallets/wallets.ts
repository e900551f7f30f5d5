// The operations on wallets, addresses, assets, balances and transfers. They use storage and the chain of the
// service. Every function works within one organization and network.

import { OperationError } from '../../contract/errors/errors.ts'
import { maxAddressesPerAnswer } from '../../contract/limits.ts'
import { expandBacklogs } from '../../storage/balances/backlog.ts'
import { lockCursor } from '../../storage/tracking/blocks.ts'
import { findOwners } from '../../storage/wallets/addresses.ts'
import {
  insertWallet,
  listWallets,
  renameWallet,
  setConfirmation,
} from '../../storage/wallets/wallets.ts'
import type { WalletHandler } from '../context.ts'
import { makePage, readPage } from '../pages.ts'
import { takeQuota } from '../quotas.ts'
import { readAddress, readOptionalAddress } from './address-fields.ts'
import { registerIn } from './addresses.ts'
import { coverFirst } from './cover.ts'
import { presentWallets } from './present-wallets.ts'
import { importNative } from './refresh.ts'
import { chainScope, getWallet, readScope } from './scope.ts'

/** Creates a wallet, with its first address if one is given. */
export const RegisterWallet: WalletHandler<'RegisterWallet'> = async (context, request) => {
  const scope = await chainScope(context)
  const { organization_id, network_id, family } = scope
  const address = readOptionalAddress(family, request.address)
  const wallet_id = context.ids.uuid()
  const wallet = {
    wallet_id,
    organization_id,
    network_id,
    name: request.name,
    // T and P have no such field: their blocks are final when they are seen.
    confirmation: request.confirmation ?? 1,
    create_time: new Date(context.clock.now()),
  }
  const job = await context.db.transaction().execute(async (db) => {
    await insertWallet(db, wallet)
    const cover = address
      ? await registerIn({ ...context, db }, scope, { wallet_id, addresses: [address] })
      : undefined
    await takeQuota({ ...context, db }, organization_id, { quota_name: 'QUOTA_WALLETS' })
    await context.record?.(db, { wallet_id })
    return cover
  })
  await coverFirst(context, scope, job)
  if (address && request.import_asset) await importNative(context, scope, { wallet_id, address })
  return { wallet_id }
}

/** Reads a wallet by its id, by one of its addresses, or by both, which must then agree. */
export const GetWallet: WalletHandler<'GetWallet'> = async (context, request) => {
  const scope = await readScope(context)
  const address = readOptionalAddress(scope.family, request.address)
  const owner = address && (await findOwners(context.db, scope, [address]))[0]
  const wallet_id = request.wallet_id ?? owner?.wallet_id ?? ''
  const row = await getWallet(context, scope, wallet_id)
  if (address && owner?.wallet_id !== row.wallet_id) throw new OperationError('WALLET_NOT_FOUND')
  const [wallet] = await presentWallets(context.db, scope, [row])
  return { wallet: wallet! }
}

/** Lists wallets in the order of their creation. */
export const ListWallets: WalletHandler<'ListWallets'> = async (context, request) => {
  const scope = await readScope(context)
  const { limit, after } = readPage<string>(context, request)
  const rows = await listWallets(context.db, scope, { limit: limit + 1, after })
  const { items, pagination } = makePage(context, request, rows, (row) => row.wallet_id)
  const perWallet = Math.floor(maxAddressesPerAnswer / limit)
  return { wallets: await presentWallets(context.db, scope, items, perWallet), pagination }
}

/** Gives a wallet another name. */
export const RenameWallet: WalletHandler<'RenameWallet'> = async (context, request) => {
  const scope = await readScope(context)
  const { wallet_id } = await getWallet(context, scope, request.wallet_id)
  const update_time = new Date(context.clock.now())
  if (!(await renameWallet(context.db, { wallet_id, name: request.name, update_time })))
    throw new OperationError('WALLET_NOT_FOUND')
  return {}
}

/** Changes how many confirmations the balances of a wallet wait for, work under way included. */
export const UpdateConfirmation: WalletHandler<'UpdateConfirmation'> = async (
  context,
  { wallet_id, confirmation },
) => {
  const scope = await readScope(context)
  await getWallet(context, scope, wallet_id)
  const update_time = new Date(context.clock.now())
  await context.db.transaction().execute(async (trx) => {
    // No block is stored meanwhile: what it noted would wait for the old number.
    const cursor = await lockCursor(trx, scope.network_id)
    const head = cursor?.block_number ?? 0
    await expandBacklogs(trx, scope.network_id)
    await setConfirmation(trx, scope, { wallet_id, confirmation, update_time, head })
  })
  return {}
}

/** Finds the wallet that tracks an address. */
export const GetAddress: WalletHandler<'GetAddress'> = async (context, request) => {
  const scope = await readScope(context)
  const address = readAddress(scope.family, request.address)
  const [owner] = await findOwners(context.db, scope, [address])
  if (!owner) throw new OperationError('ADDRESS_NOT_FOUND')
  return {
    address: scope.family.formatAddress(address),
    wallet_id: owner.wallet_id,
    user_friendly_address: scope.family.formatUserFriendly?.(address),
  }
}
