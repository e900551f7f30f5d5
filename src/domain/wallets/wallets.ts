// The operations on wallets, addresses, assets, balances and transfers. They use storage and the chain of the
// service. Every function works within one organization and network.

import { OperationError } from '../../contract/errors/errors.ts'
import { maxAddressesPerAnswer, maxListedAddresses } from '../../contract/limits.ts'
import type { WalletAnswer } from '../../contract/operations/calls.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { subtractUse } from '../../storage/access/quotas.ts'
import type { Db } from '../../storage/pg/database.ts'
import { type DecidedKey, postponeTransactions } from '../../storage/transactions/open.ts'
import {
  findOwners,
  type ListedAddress,
  listFirstAddresses,
} from '../../storage/wallets/addresses.ts'
import {
  type ChangeKey,
  findWaiting,
  hastenDeliveries,
  type PendingKey,
  postponeChanges,
  postponePending,
  readDepth,
  setConfirmation,
} from '../../storage/wallets/confirmation.ts'
import type { WalletRow } from '../../storage/wallets/tables.ts'
import { deleteTokenRules } from '../../storage/wallets/token-rules.ts'
import {
  insertWallet,
  listWallets,
  lockWallet,
  markRemoved,
  renameWallet,
  touchWallet,
} from '../../storage/wallets/wallets.ts'
import { endQueue, queuePage } from '../../storage/webhooks/queue-pages.ts'
import { deleteWebhook, lockWebhooksOf } from '../../storage/webhooks/webhooks.ts'
import type { WalletHandler } from '../context.ts'
import { inTrackedPages, pageRows } from '../in-pages.ts'
import { makePage, readPage } from '../pages.ts'
import { takeQuota } from '../quotas.ts'
import { readAddress, readOptionalAddress } from './address-fields.ts'
import { type RemovalPlace, registerIn, removePage } from './addresses.ts'
import { coverFirst } from './cover.ts'
import { importNative } from './refresh.ts'
import { chainScope, findOwnWallet, getWallet, type ReadScope, readScope } from './scope.ts'

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
  // Both were given and name different wallets.
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
  // Bounds the answer as a whole: a page of large wallets would have millions of addresses.
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

/** Where the pages of a change of the confirmation continue; undefined where all is changed. */
type Rest = {
  changes?: ChangeKey | undefined
  pending?: PendingKey | undefined
  deliveries?: number | undefined
  transactions?: DecidedKey | undefined
}

/** Changes how many confirmations the balances of a wallet wait for, work under way included. */
export const UpdateConfirmation: WalletHandler<'UpdateConfirmation'> = async (
  context,
  { wallet_id, confirmation },
) => {
  const scope = await readScope(context)
  await getWallet(context, scope, wallet_id)
  const update_time = new Date(context.clock.now())
  await inTrackedPages<Rest>(context, scope.network_id, async (trx, head, rest) => {
    // No block is stored meanwhile: what it noted would wait for the old number.
    if (!rest) await setConfirmation(trx, scope, { wallet_id, confirmation, update_time, head })
    const waiting = rest ?? (await findWaiting(trx, scope, { wallet_id, head }))
    if (!Object.values(waiting).some(Boolean)) return undefined
    const depth = await readDepth(trx, wallet_id)
    const page = { wallet_id, depth, head, limit: pageRows }
    const next: Rest = {}
    if (waiting.changes)
      next.changes = await postponeChanges(trx, { ...page, after: rest?.changes })
    if (waiting.pending)
      next.pending = await postponePending(trx, { ...page, after: rest?.pending })
    if (waiting.deliveries)
      next.deliveries = await hastenDeliveries(trx, scope, { ...page, after: rest?.deliveries })
    if (waiting.transactions)
      next.transactions = await postponeTransactions(trx, { ...page, after: rest?.transactions })
    return Object.values(next).some((key) => key !== undefined) ? next : undefined
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

/**
 * Makes wallet records. A wallet with more addresses than fit shows the first ones of ListAddresses,
 * any other one all of them in the order of their registration.
 */
async function presentWallets(
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

// Each takes about a millisecond and its undelivered notifications.
const webhooksPerPage = 50

/** Removes a wallet with its addresses, balances and webhooks; its history stays. Repeating it changes nothing. */
export const RemoveWallet: WalletHandler<'RemoveWallet'> = async (context, request) => {
  const scope = await readScope(context)
  const wallet = await findOwnWallet(context, scope, request.wallet_id)
  if (!wallet) return {}
  const { wallet_id } = wallet
  // As with addresses: a block or a balance that is being stored would leave something behind.
  await inTrackedPages<{ at: RemovalPlace | undefined }>(
    context,
    scope.network_id,
    async (trx, _head, page) => {
      const now = new Date(context.clock.now())
      // Requests that add an address or a webhook wait for this row, and at the end find the wallet removed.
      if (!(await lockWallet(trx, wallet_id))) return undefined
      const at = page?.at
      const { count, next } = await removePage(trx, scope, { wallet_id, at })
      const webhooks = await lockWebhooksOf(trx, scope, { wallet_id, limit: webhooksPerPage })
      let [removed, headers, ended] = [0, 0, 0]
      // One by one, in the order of the locks, until a page of their queues has ended.
      for (const webhook_id of webhooks) {
        const queue = await endQueue(trx, webhook_id)
        ended += queue.count
        if (queue.isMore) break
        headers += await deleteWebhook(trx, webhook_id)
        removed++
        if (ended >= queuePage) break
      }
      // The last page has looked at all addresses: some may have been added between two pages.
      const isLast =
        at === undefined &&
        next === undefined &&
        removed === webhooks.length &&
        webhooks.length < webhooksPerPage
      await touchWallet(trx, wallet_id, { gained: -count, update_time: now })
      if (isLast) {
        await markRemoved(trx, wallet_id, now)
        await deleteTokenRules(trx, scope, wallet_id)
      }
      await subtractUse(trx, scope.organization_id, [
        ['QUOTA_WALLETS', isLast ? 1 : 0],
        ['QUOTA_WEBHOOKS', removed],
        ['QUOTA_WEBHOOK_HEADERS', headers],
      ])
      return isLast ? undefined : { at: next }
    },
  )
  return {}
}
