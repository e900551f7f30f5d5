import { randomUUIDv7 } from 'node:crypto'
import { BlockGoneError, BlockMissingError, type BlockRef } from '../../chains/chain.ts'
import { dueBlockOf } from '../../domain/wallets/transfer-view.ts'
import { type Reading, rememberReadings, storeReadings } from '../../storage/balances/balances.ts'
import { deepConfirmation } from '../../storage/balances/changes.ts'
import { stillMissing } from '../../storage/balances/missing.ts'
import { insertPending } from '../../storage/balances/pending.ts'
import {
  type ComparedBalance,
  findComparable,
  hasBacklog,
} from '../../storage/balances/reconcile.ts'
import { isReopening } from '../../storage/balances/reopening.ts'
import { type BalanceDifference, insertDifferences } from '../../storage/balances/rounds.ts'
import type { Db } from '../../storage/pg/database.ts'
import { awaitCursor, findCursor } from '../../storage/tracking/blocks.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import { ensureAssets } from '../../storage/wallets/assets.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { type Patience, tryOnce } from './patience.ts'
import { findRef, holdRead, keyOfWork, readPairs } from './read-pairs.ts'

type Read = Reading & { confirmation: number; isKept: boolean }

/** What came of a page: how many balances were compared, how many could not be read, and what differed. */
export type PageOfDifferences = {
  compared: number
  unread: number
  differences: BalanceDifference[]
}

/**
 * Compares balances of a chain whose past states can be read with what the nodes say, at the newest
 * block with the wallet's confirmation, and stores what differs: tokens that change balances without a
 * Transfer event, coin that moves without a trace. Balances for which work is open are left to that. Undefined where all
 * work waits because the tracker is far behind, or all balances are going to be read again.
 */
export const compareBalances = async (
  tools: TrackerTools,
  page: readonly ComparedBalance[],
  signal: AbortSignal,
  patience: Patience = tryOnce,
): Promise<PageOfDifferences | undefined> =>
  await correctPage(tools, { page, patience }, signal, async (trx, all) => {
    const stored = await findComparable(trx, all)
    const known = new Map(stored.map((balance) => [keyOfWork(balance), balance]))
    const differing = all.flatMap((read) => {
      const balance = known.get(keyOfWork(read))
      if (!balance) return []
      // `null` means that the contract fails. It is stored as unreadable, not as zero.
      const isSame = read.balance === null || read.balance === balance.balance
      if (isSame && (read.balance === null) === balance.is_unreadable) return []
      return [{ read, expected: balance.balance, reason: reasonOf(read, balance) }]
    })
    return { compared: stored.length, differing }
  })

/**
 * Reads pairs that have no balance, and stores those of which the chain has one: it was there before the registration, or no
 * event has named the address (WETH, EIP-2309, coin that no trace shows).
 */
export const addMissing = async (
  tools: TrackerTools,
  page: readonly ComparedBalance[],
  signal: AbortSignal,
  patience: Patience = tryOnce,
): Promise<PageOfDifferences | undefined> =>
  await correctPage(tools, { page, patience }, signal, async (trx, all) => {
    // A contract that fails has no balance to be shown.
    const missing = await stillMissing(
      trx,
      all.filter(({ balance }) => balance !== null),
    )
    return {
      compared: missing.length,
      differing: missing.flatMap((read) =>
        read.balance === 0n ? [] : [{ read, expected: 0n, reason: missingReason }],
      ),
    }
  })

type Correction = { read: Read; expected: bigint; reason: string }

/** Reads a page, then stores in one short transaction what `find` says is wrong. */
async function correctPage(
  tools: TrackerTools,
  { page, patience }: { page: readonly ComparedBalance[]; patience: Patience },
  signal: AbortSignal,
  find: (trx: Db, all: readonly Read[]) => Promise<{ compared: number; differing: Correction[] }>,
): Promise<PageOfDifferences | undefined> {
  const { db, clock, network_id, chain, lease } = tools
  const cursor = await findCursor(db, network_id)
  // Before anything is read, and again below: that work comes first, and this can wait.
  if (!cursor || (await isWorkOpen(db, network_id))) return undefined
  const newest = { number: cursor.block_number, hash: cursor.block_hash }
  const { all, at, unread } = await readPage(tools, { page, newest, patience }, signal)
  if (all.length === 0) return { compared: 0, unread, differences: [] }
  const now = new Date(clock.now())
  // Outside of the transaction: asset rows are shared, and nothing may wait for them.
  const assetOf = new Map(page.map((pair) => [pair.asset_id, pair]))
  const held = new Set(all.flatMap(({ balance, asset_id }) => (balance ? [asset_id] : [])))
  await ensureAssets(
    db,
    network_id,
    [...held].map((asset_id) => assetOf.get(asset_id)!),
    now,
  )
  return await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    await awaitCursor(trx, network_id)
    if (await isWorkOpen(trx, network_id)) return undefined
    await holdRead(trx, tools, { at, newest })
    // Balances with open work are not in the result: that work will read them anyway.
    const { compared, differing } = await find(trx, all)
    const rows = differing.map(({ read }) => read)
    // A deep wallet was read at the newest block; its value waits until that block is confirmed.
    const kept = rows.filter(({ isKept, balance }) => isKept && balance !== null)
    await insertPending(
      trx,
      kept.map((row) => ({
        ...row,
        since_block: row.as_of_block,
        due_block: dueBlockOf(row.as_of_block, row.confirmation),
      })),
      network_id,
    )
    const direct = rows.filter((row) => !kept.includes(row))
    await storeReadings(trx, direct, { network_id, now })
    if (chain.reorganizes)
      await rememberReadings(trx, direct, { network_id, reading_id: randomUUIDv7() })
    const differences = differing.map(({ read, expected, reason }) => ({
      ...{ organization_id: read.organization_id, network_id, wallet_id: read.wallet_id },
      ...{ address: read.address, asset_id: read.asset_id, block_number: read.as_of_block },
      ...{ expected, found: read.balance, reason },
    }))
    await insertDifferences(trx, differences, { network_id, now })
    return { compared, unread, differences }
  })
}

/**
 * Whether work waits that names no balance of its own, so that none can be said to have no open work: a backlog, or the
 * reading of all balances after a gap or a rewind, which would be reported as differences that no event has named.
 */
const isWorkOpen = async (db: Db, network_id: number): Promise<boolean> =>
  (await hasBacklog(db, network_id)) || (await isReopening(db, network_id))

const missingReason =
  'no balance was stored: it is older than the registration, or no event has named the address'

const reasonOf = (
  { balance, contract_address }: Reading,
  known: { balance: bigint; is_unreadable: boolean },
): string => {
  if (balance === null) return 'the contract fails'
  if (known.is_unreadable && balance === known.balance) return 'the contract answers again'
  return contract_address.length > 0
    ? 'the token changed it without a Transfer event'
    : 'the coin moved without a transaction or trace that names the address'
}

/** Reads a page, each balance at the block of its wallet; deep wallets at the newest one. */
async function readPage(
  tools: TrackerTools,
  {
    page,
    newest,
    patience,
  }: { page: readonly ComparedBalance[]; newest: BlockRef; patience: Patience },
  signal: AbortSignal,
): Promise<{ all: Read[]; at: BlockRef[]; unread: number }> {
  const { chain } = tools
  const all: Read[] = []
  const at: BlockRef[] = []
  let unread = 0
  const groups = Map.groupBy(page, ({ confirmation }) =>
    confirmation > deepConfirmation ? newest.number : newest.number - Math.max(confirmation, 1) + 1,
  )
  for (const [number, pairs] of groups) {
    // The chain is shorter than the confirmation of the wallet: nothing is confirmed yet.
    if (number < 0) continue
    try {
      const block = number === newest.number ? newest : await findRef(tools, number, signal)
      const readings = await readPairs(chain, pairs, block, signal)
      at.push(block)
      patience.succeed(newest.number - number)
      for (const [index, reading] of readings.entries()) {
        const { confirmation } = pairs[index]!
        all.push({ ...reading, confirmation, isKept: confirmation > deepConfirmation })
      }
    } catch (error) {
      if (!(error instanceof BlockGoneError || error instanceof BlockMissingError)) throw error
      // By the depth and not the number, which is another one at each attempt. Where no node has states of that depth, the
      // next round comes by again.
      if (!patience.isOver(newest.number - number)) throw error
      unread += pairs.length
    }
  }
  return { all, at, unread }
}
