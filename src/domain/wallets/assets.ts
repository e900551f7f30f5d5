// Balances as the API lists them, and RemoveAsset. Page tokens carry the key of the last row; their form is checked,
// because a client may send the token of another list.

import type { AssetView } from '../../chains/chain.ts'
import type { WalletRequest } from '../../contract/operations/calls.ts'
import { type ListedSum, listBalances, listSums } from '../../storage/balances/balances.ts'
import { assetIdOf } from '../../storage/wallets/assets.ts'
import { deleteTokenRule, hasTokenRule } from '../../storage/wallets/token-rules.ts'
import type { Context, WalletHandler } from '../context.ts'
import { inTrackedPages, pageRows } from '../in-pages.ts'
import { makePage, readPage, sealPosition } from '../pages.ts'
import { readAddress, readToken } from './address-fields.ts'
import { findOwnWallet, type ReadScope, readHolder, readScope } from './scope.ts'

type ListRequest = WalletRequest<'ListAssets'>

/** Lists balances in the order of their creation, or one sum per asset. */
export const ListAssets: WalletHandler<'ListAssets'> = async (context, request) => {
  const scope = await readScope(context)
  const filter = {
    ...(await readHolder(context, scope, request)),
    asset_type: request.asset_type,
    contract_address:
      request.contract_address === undefined
        ? readToken(scope.family, request.token_address)
        : readAddress(scope.family, request.contract_address, 'contract_address'),
    exclude_zero: request.exclude_zero_balance === true,
  }
  return request.is_aggregated
    ? await listAggregated(context, scope, request, filter)
    : await listSingle(context, scope, request, filter)
}

type Filter = Parameters<typeof listBalances>[2]

// A page token may be of another list, or of a version that had other parts.
const isOf =
  (...types: string[]) =>
  (parts: readonly unknown[]): boolean =>
    parts.length === types.length && parts.every((part, at) => typeof part === types[at])

// The parts of the two kinds of page tokens, by their types.
const isBalancePlace = isOf('string', 'string', 'number', 'string', 'string')
const isSumPlace = isOf('string', 'string')

async function listSingle(
  context: Context,
  scope: ReadScope,
  request: ListRequest,
  filter: Filter,
) {
  const { limit, after } = readPage<[string, string, number, string, string]>(
    context,
    request,
    isBalancePlace,
  )
  const { rows, next } = await listBalances(context.db, scope, filter, {
    limit,
    after: after && {
      wallet_id: after[0],
      create_time: after[1],
      position: after[2],
      asset_id: after[3],
      address: Buffer.from(after[4], 'hex'),
    },
  })
  const next_page_token = next
    ? sealPosition(context, request, [
        next.wallet_id,
        next.create_time,
        next.position,
        next.asset_id,
        next.address.toString('hex'),
      ])
    : ''
  const assets = rows.map((row) => ({
    ...scope.family.presentAsset({
      wallet_id: row.wallet_id,
      address: row.address,
      asset: toAssetView(row),
      balance: row.balance,
      token_account_address: row.token_account_address,
    }),
    is_unreadable: row.is_unreadable,
  }))
  return { assets, pagination: { next_page_token } }
}

async function listAggregated(
  context: Context,
  scope: ReadScope,
  request: ListRequest,
  filter: Filter,
) {
  const { limit, after } = readPage<[string, string]>(context, request, isSumPlace)
  const rows = await listSums(context.db, scope, filter, {
    limit: limit + 1,
    after: after && { create_time: after[0], asset_id: after[1] },
  })
  const { items, pagination } = makePage(
    context,
    request,
    rows,
    (row) => [row.create_time, row.asset_id],
    (row) => row.is_beyond,
  )
  const assets = items.map((row) => ({
    ...scope.family.presentAsset({
      wallet_id: filter.wallet_id ?? '',
      address: null,
      asset: toAssetView(row),
      balance: row.balance,
      token_account_address: null,
      // A sum has no single address, hence no token account.
    }),
    is_unreadable: row.is_unreadable,
  }))
  return { assets, pagination }
}

const toAssetView = (row: ListedSum): AssetView => ({
  asset_type: row.asset_type,
  contract_address: row.contract_address,
  token_id: row.token_id,
  name: row.name,
  symbol: row.symbol,
  decimals: row.decimals,
  token_uri: row.token_uri,
  token_data: row.token_data,
})

/**
 * Stops tracking a token for a whole wallet or the organization; its balances go, its transfers stay.
 * Repeating it changes nothing.
 */
export const RemoveAsset: WalletHandler<'RemoveAsset'> = async (context, request) => {
  const scope = await readScope(context)
  const { network_id } = scope
  const { asset_type } = request
  const contract_address = readToken(scope.family, request.token_address)!
  const wallet = request.wallet_id && (await findOwnWallet(context, scope, request.wallet_id))
  if (request.wallet_id && !wallet) return {}
  const asset_id = assetIdOf(network_id, { asset_type, contract_address, token_id: 0n })
  const rule = { asset_id, ...(wallet && { wallet_id: wallet.wallet_id }) }
  // Nothing is locked for a missing rule: any caller could request that at any rate.
  if (!(await hasTokenRule(context.db, scope, rule))) return {}
  // As with addresses: a block or a balance that is being stored would leave something behind.
  await inTrackedPages<true>(context, network_id, async (trx) =>
    (await deleteTokenRule(trx, scope, rule, pageRows)) ? undefined : true,
  )
  return {}
}
