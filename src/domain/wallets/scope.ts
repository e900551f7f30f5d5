// Which rows an operation on wallets, transfers, transactions or webhooks may touch: those of one network and of the
// organization of its principal. The organization is never read from the request.

import { type Chain, ChainUnavailableError, type Family } from '../../chains/chain.ts'
import { families, familyAt } from '../../chains/registry.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { WalletService } from '../../contract/variant.ts'
import { isUuid } from '../../lib/ids.ts'
import { findStoredNetwork } from '../../storage/tracking/networks.ts'
import { findOwners } from '../../storage/wallets/addresses.ts'
import type { WalletRow, WalletScope } from '../../storage/wallets/tables.ts'
import { findWallet } from '../../storage/wallets/wallets.ts'
import type { Context } from '../context.ts'
import { readOptionalAddress } from './address-fields.ts'

/** Where an operation reads: the rows of one organization on one chain, and how that chain writes. */
export type ReadScope = WalletScope & { family: Family }

/** Where an operation writes, or asks the chain. */
export type ChainScope = WalletScope & { family: Family; chain: Chain }

// No row has this id: identities begin at 1.
const unknownChain = 0
const retryAfterSeconds = 60

/**
 * What is stored can be read and removed while the chain is not configured: in the network of the address, else in
 * the first that there was. Before there ever was one there is nothing, under an id that no chain has.
 */
export async function readScope(context: Context): Promise<ReadScope> {
  const { db, chains, principal, chain, network } = context
  const { organization_id } = principal
  const open = chains?.find(chain, network)
  if (open) return { organization_id, network_id: open.network_id, family: open.chain }
  const named = network ?? chains?.defaultOf?.(chain)
  const stored = await findStoredNetwork(db, chain, named)
  const family = families[context.service as WalletService](stored?.address_rules ?? {})
  return {
    organization_id,
    network_id: stored?.network_id ?? unknownChain,
    family: familyAt(family, { chain, network }),
  }
}

/** Registration without tracking is refused: deposits would go unnoticed. */
export async function chainScope(context: Context): Promise<ChainScope> {
  const { chains, principal, chain: name, network } = context
  // A network that is configured and not open yet is opened now, because a write must be tracked.
  const open = chains?.find(name, network) ?? (await chains?.open(name, network))
  if (!open)
    throw new OperationError('CHAIN_NOT_CONFIGURED', {
      detail: `The chain "${name}" is not configured in this installation.`,
      retryAfter: retryAfterSeconds,
    })
  const { network_id, chain } = open
  return { organization_id: principal.organization_id, network_id, family: chain, chain }
}

/** A wallet of the caller that is not removed. */
export async function findOwnWallet(
  { db }: Pick<Context, 'db'>,
  scope: WalletScope,
  wallet_id: string,
): Promise<WalletRow | undefined> {
  const row = isUuid(wallet_id) ? await findWallet(db, scope, wallet_id) : undefined
  return row?.remove_time === null ? row : undefined
}

/** The same where it has to be there; one of another organization answers as one that does not exist. */
export async function getWallet(
  context: Pick<Context, 'db'>,
  scope: WalletScope,
  wallet_id: string,
): Promise<WalletRow> {
  const row = await findOwnWallet(context, scope, wallet_id)
  if (!row) throw new OperationError('WALLET_NOT_FOUND')
  return row
}

/** The same whose history is to be read, which stays when the wallet is removed. */
export async function getWalletOfHistory(
  { db }: Pick<Context, 'db'>,
  scope: WalletScope,
  wallet_id: string,
): Promise<WalletRow> {
  const row = isUuid(wallet_id) ? await findWallet(db, scope, wallet_id) : undefined
  if (!row) throw new OperationError('WALLET_NOT_FOUND')
  return row
}

/** The wallet and address that a request names; an address alone stands for its wallet's. */
export async function readHolder(
  context: Context,
  scope: ReadScope,
  request: { wallet_id?: string; address?: string },
): Promise<{ wallet_id?: string; address?: Buffer }> {
  const address = readOptionalAddress(scope.family, request.address)
  // Both may be given, and must then agree.
  const named = request.wallet_id && (await getWallet(context, scope, request.wallet_id))
  const owner = address && (await findOwners(context.db, scope, [address]))[0]
  if (address && (!owner || (named && owner.wallet_id !== named.wallet_id)))
    throw new OperationError('ADDRESS_NOT_FOUND')
  const wallet_id = named ? named.wallet_id : owner?.wallet_id
  return { ...(wallet_id && { wallet_id }), ...(address && { address }) }
}

/** Queries the chain for a caller; throws an operation error when no node can answer. */
export async function askChain<answer>(ask: () => Promise<answer>): Promise<answer> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof ChainUnavailableError)) throw error
    throw new OperationError('UPSTREAM_UNAVAILABLE', { retryAfter: 5, cause: error })
  }
}
