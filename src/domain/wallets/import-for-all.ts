import { OperationError } from '../../contract/errors/errors.ts'
import { maxTokenRules } from '../../contract/limits.ts'
import type { AssetType } from '../../contract/records/assets.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { assetIdOf, ensureAssets } from '../../storage/wallets/assets.ts'
import { insertTokenRule } from '../../storage/wallets/token-rules.ts'
import { holdWallet } from '../../storage/wallets/wallets.ts'
import type { Context } from '../context.ts'
import { coverFirst, enqueueCover } from './cover.ts'
import { askChain, type ChainScope } from './scope.ts'

const refuse = (reason: string, detail: string) =>
  invalidRequest([{ field: 'token_address', reason, detail }])

/**
 * Tracks a token for all addresses of a wallet, or without one of the organization: those that are
 * there, whose balances are read by a job, and those that come. The coin is tracked anyway, so it is
 * only read.
 */
export async function importForAll(
  context: Context,
  scope: ChainScope,
  request: { asset_type: AssetType; wallet_id?: string; token: Buffer | undefined },
): Promise<void> {
  const { network_id, family } = scope
  const { wallet_id, token } = request
  if (!token) throw refuse('REQUIRED', 'Is required without an address.')
  const isNative = token.length === 0
  const { info, asset } = isNative
    ? { info: {}, asset: family.native }
    : await findToken(context, scope, { asset_type: request.asset_type, token_address: token })
  const create_time = new Date(context.clock.now())
  const rule = { asset_id: assetIdOf(network_id, asset), ...(wallet_id && { wallet_id }) }
  // Before the transaction: assets are shared by all organizations, and nothing waits for their rows.
  await ensureAssets(context.db, network_id, [{ ...asset, ...info }], create_time)
  const job = await context.db.transaction().execute(async (db) => {
    // Held until the commit: a wallet that is removed meanwhile would leave a rule behind.
    if (wallet_id && !(await holdWallet(db, wallet_id)))
      throw new OperationError('WALLET_NOT_FOUND')
    if (
      !isNative &&
      !(await insertTokenRule(db, scope, rule, { most: maxTokenRules, create_time }))
    )
      throw refuse(
        'TOO_MANY',
        `An organization can track ${maxTokenRules} tokens for whole wallets. Name an address.`,
      )
    return await enqueueCover({ ...context, db }, scope, rule)
  })
  await coverFirst(context, scope, job)
}

async function findToken(
  { signal }: Context,
  { chain }: ChainScope,
  token: { asset_type: AssetType; token_address: Buffer },
) {
  const verify = chain.tokens?.verifyToken
  if (!verify) throw refuse('INVALID_TOKEN', 'This chain has no tokens.')
  const found = await askChain(() => verify(token, signal))
  if (!found.ok) throw refuse('INVALID_TOKEN', found.detail)
  return found
}
