import { subtractUse } from '../../storage/access/quotas.ts'
import { expandBacklogs } from '../../storage/balances/backlog.ts'
import { lockCursor } from '../../storage/tracking/blocks.ts'
import { deleteAddresses } from '../../storage/wallets/addresses.ts'
import { deleteTokenRules } from '../../storage/wallets/token-rules.ts'
import { markRemoved } from '../../storage/wallets/wallets.ts'
import { deleteWebhook, lockWebhooksOf } from '../../storage/webhooks/webhooks.ts'
import type { WalletHandler } from '../context.ts'
import { findOwnWallet, readScope } from './scope.ts'

/** Removes a wallet with its addresses, balances and webhooks; its history stays. Repeating it changes nothing. */
export const RemoveWallet: WalletHandler<'RemoveWallet'> = async (context, request) => {
  const scope = await readScope(context)
  const wallet = await findOwnWallet(context, scope, request.wallet_id)
  if (!wallet) return {}
  const { wallet_id } = wallet
  await context.db.transaction().execute(async (trx) => {
    // As with addresses: a block or a balance that is being stored would leave something behind.
    await lockCursor(trx, scope.network_id)
    await expandBacklogs(trx, scope.network_id)
    // Requests that add an address or a webhook wait for this row, and then find the wallet removed.
    if (!(await markRemoved(trx, wallet_id, new Date(context.clock.now())))) return
    const addresses = await deleteAddresses(trx, scope, { wallet_id })
    await deleteTokenRules(trx, scope, wallet_id)
    const webhooks = await lockWebhooksOf(trx, scope, wallet_id)
    let headers = 0
    for (const webhook_id of webhooks) headers += await deleteWebhook(trx, webhook_id)
    await subtractUse(trx, scope.organization_id, [
      ['QUOTA_ADDRESSES', addresses],
      ['QUOTA_WALLETS', 1],
      ['QUOTA_WEBHOOKS', webhooks.length],
      ['QUOTA_WEBHOOK_HEADERS', headers],
    ])
  })
  return {}
}
