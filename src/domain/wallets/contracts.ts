// Token contracts of variant C. The chain is asked before the transaction begins, and the contract must behave as its standard
// says: a registration of something else would produce records that mean nothing.

import type { TokenStandard } from '../../chains/chain.ts'
import type { TokenInfo } from '../../chains/tokens.ts'
import type { ContractMetadata } from '../../contract/records/token.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { subtractUse } from '../../storage/access/quotas.ts'
import { ensureAssets, setAssetInfo } from '../../storage/wallets/assets.ts'
import {
  deleteContract,
  deleteContractBalances,
  hasContract,
  listContracts,
  upsertContract,
} from '../../storage/wallets/contracts.ts'
import type { WalletHandler } from '../context.ts'
import { inTrackedPages, pageRows } from '../in-pages.ts'
import { takeQuota } from '../quotas.ts'
import { readAddress } from './address-fields.ts'
import { askChain, chainScope, readScope } from './scope.ts'

/** Lists the registered contracts in the order of their registration. */
export const ListContracts: WalletHandler<'ListContracts'> = async (context) => {
  const scope = await readScope(context)
  const rows = await listContracts(context.db, scope)
  return {
    contracts: rows.map((row) => ({
      contract_address: scope.family.formatAddress(row.contract_address),
      contract_type: row.contract_type,
      contract_metadata: row.contract_metadata,
    })),
  }
}

/** Tracks a token contract after the chain has proved that it is one; repeating it reads it again. */
export const RegisterContract: WalletHandler<'RegisterContract'> = async (
  context,
  { contract_type, ...request },
) => {
  const { organization_id, network_id, family, chain } = await chainScope(context)
  const contract_address = readAddress(family, request.contract_address, 'contract_address')
  const verify = chain.tokens?.verifyContract
  const standard = family.standards?.[contract_type]
  const refuse = (field: string, detail: string) =>
    invalidRequest([{ field, reason: 'INVALID_CONTRACT', detail }])
  if (!verify || !standard) throw refuse('contract_type', 'This chain has no tokens.')
  // Nodes are asked before the transaction. The chain decides whether it is a contract of that
  // standard.
  const found = await askChain(() => verify({ contract_address, contract_type }, context.signal))
  if (!found.ok) throw refuse(found.field, found.detail)
  const { info } = found
  const create_time = new Date(context.clock.now())
  const { asset_type } = standard
  const asset = { asset_type, contract_address, token_id: 0n, ...info }
  await context.db.transaction().execute(async (trx) => {
    // Items of a collection become assets when they are first seen.
    // An ERC-20 is one asset, which balances refer to before its first transfer.
    if (!standard.isCollection) await ensureAssets(trx, network_id, [asset], create_time)
    await setAssetInfo(trx, { network_id, contract_address, ...info })
    const isNew = await upsertContract(trx, {
      organization_id,
      network_id,
      contract_address,
      contract_type,
      contract_metadata: metadataOf(request.contract_address, standard, info),
      create_time,
    })
    // Repeating a registration takes no quota.
    if (isNew)
      await takeQuota({ ...context, db: trx }, organization_id, { quota_name: 'QUOTA_CONTRACTS' })
    await context.record?.(trx, {})
  })
  return {}
}

/** Stops tracking a contract; its balances go, its transfers stay. Repeating it changes nothing. */
export const RemoveContract: WalletHandler<'RemoveContract'> = async (context, request) => {
  const scope = await readScope(context)
  const contract_address = readAddress(scope.family, request.contract_address, 'contract_address')
  // Nothing is locked for a missing contract: any caller could request that at any rate.
  if (!(await hasContract(context.db, scope, contract_address))) return {}
  // As with addresses: a block or a balance that is being stored would leave something behind.
  await inTrackedPages<true>(context, scope.network_id, async (trx) => {
    // The contract in the last page: a call that breaks off can then be repeated.
    if (!(await deleteContractBalances(trx, scope, contract_address, pageRows))) return true
    if (await deleteContract(trx, scope, contract_address))
      await subtractUse(trx, scope.organization_id, [['QUOTA_CONTRACTS', 1]])
    return undefined
  })
  return {}
}

/** Null where the contract has no metadata (docs/decisions/transfers.md). */
function metadataOf(
  contract_address: string,
  { key, isCollection }: TokenStandard,
  { name, symbol, decimals }: TokenInfo,
): ContractMetadata {
  if (name === null && symbol === null && decimals === null) return null
  const said = { contract_address, name: name ?? '', symbol: symbol ?? '' }
  if (isCollection || decimals === null) return { [key]: said }
  return { [key]: { ...said, decimals } }
}
