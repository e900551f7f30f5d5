// ImportAsset of T, S and P: for one address, or without one for all of them (`import-for-all.ts`).

import { OperationError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { findOwners } from '../../storage/wallets/addresses.ts'
import {
  assetIdOf,
  ensureAssets,
  insertTokenImports,
  keepTokenImport,
} from '../../storage/wallets/assets.ts'
import type { WalletHandler } from '../context.ts'
import { readOptionalAddress, readToken } from './address-fields.ts'
import { importForAll } from './import-for-all.ts'
import { importNative, requestRefresh } from './refresh.ts'
import { askChain, chainScope, getWallet } from './scope.ts'

/** Reads the current balance of the coin or of a token, which is tracked from then on. */
export const ImportAsset: WalletHandler<'ImportAsset'> = async (context, request) => {
  const scope = await chainScope(context)
  const { organization_id, network_id, family, chain } = scope
  const address = readOptionalAddress(family, request.address)
  const token = readToken(family, request.token_address)
  const { asset_type, token_account_address } = request
  const wallet = request.wallet_id && (await getWallet(context, scope, request.wallet_id))
  const assertOwner = (owner: { wallet_id: string } | undefined) => {
    if (!owner || (wallet && owner.wallet_id !== wallet.wallet_id))
      throw new OperationError('ADDRESS_NOT_FOUND')
    return owner
  }
  // The native coin may be named as a token too (S: 0x2::sui::SUI). Where tokens have no accounts of
  // their own (S), the account says nothing.
  const isToken =
    (token && token.length > 0) ||
    (family.tokenAccounts === true && token_account_address !== undefined)
  // Without an address and without a token account, the token is meant for all addresses.
  if (!address && !(family.tokenAccounts && token_account_address !== undefined)) {
    await importForAll(context, scope, {
      asset_type,
      ...(wallet && { wallet_id: wallet.wallet_id }),
      token,
    })
    return {}
  }
  if (address && !isToken) {
    const owner = assertOwner((await findOwners(context.db, scope, [address]))[0])
    await importNative(context, scope, { wallet_id: owner.wallet_id, address })
    return {}
  }
  // The family decides which token and which owner are meant (T: an account names its token; S: coins have types).
  const resolve = chain.tokens?.resolveImport
  const found = resolve
    ? await askChain(() =>
        resolve(
          {
            asset_type,
            ...(address && { address }),
            ...(token && { token_address: token }),
            ...(token_account_address !== undefined && { token_account_address }),
          },
          context.signal,
        ),
      )
    : { ok: false as const, field: 'token_address', detail: 'This chain has no tokens.' }
  if (!found.ok)
    throw invalidRequest([{ field: found.field, reason: 'INVALID_TOKEN', detail: found.detail }])
  // The chain resolved the owner of the token account; it has to be one of this organization.
  const owner = assertOwner((await findOwners(context.db, scope, [found.address]))[0])
  const now = new Date(context.clock.now())
  const asset_id = assetIdOf(network_id, found.asset)
  await ensureAssets(context.db, network_id, [{ ...found.asset, ...found.info }], now)
  await insertTokenImports(
    context.db,
    [
      {
        network_id,
        address: found.address,
        asset_id,
        organization_id,
        wallet_id: owner.wallet_id,
        token_address: found.asset.contract_address,
        token_account_address: found.token_account_address,
      },
    ],
    now,
  )
  // The row may be there because of a rule. From now on the removal of the rule leaves it.
  await keepTokenImport(context.db, {
    network_id,
    address: found.address,
    asset_id,
    organization_id,
  })
  await requestRefresh(context, scope, {
    wallet_id: owner.wallet_id,
    address: found.address.toString('hex'),
    asset_type,
    asset_id,
  })
  return {}
}
