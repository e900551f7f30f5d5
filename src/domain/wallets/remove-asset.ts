import { expandBacklogs } from '../../storage/balances/backlog.ts'
import { lockCursor } from '../../storage/tracking/blocks.ts'
import { assetIdOf } from '../../storage/wallets/assets.ts'
import { deleteTokenRule, hasTokenRule } from '../../storage/wallets/token-rules.ts'
import type { WalletHandler } from '../context.ts'
import { readToken } from './address-fields.ts'
import { findOwnWallet, readScope } from './scope.ts'

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
  await context.db.transaction().execute(async (trx) => {
    // As with addresses: a block or a balance that is being stored would leave something behind.
    await lockCursor(trx, network_id)
    await expandBacklogs(trx, network_id)
    await deleteTokenRule(trx, scope, rule)
  })
  return {}
}
