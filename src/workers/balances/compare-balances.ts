import { randomUUIDv7 } from 'node:crypto'
import { BlockGoneError, BlockMissingError, type BlockRef } from '../../chains/chain.ts'
import { dueBlockOf } from '../../domain/wallets/transfer-view.ts'
import { type Reading, rememberReadings, storeReadings } from '../../storage/balances/balances.ts'
import { deepConfirmation } from '../../storage/balances/changes.ts'
import { insertPending } from '../../storage/balances/pending.ts'
import {
  type ComparedBalance,
  findComparable,
  hasBacklog,
} from '../../storage/balances/reconcile.ts'
import { type BalanceDifference, insertDifferences } from '../../storage/balances/rounds.ts'
import { awaitCursor, findCursor } from '../../storage/tracking/blocks.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { findRef, holdRead, keyOfWork, readPairs } from './read-pairs.ts'

type Read = Reading & { confirmation: number; isKept: boolean }

/**
 * Compares balances of a chain whose past states can be read with what the nodes say, at the newest
 * block with the wallet's confirmation, and stores what differs: tokens that change balances without a
 * Transfer event, coin that moves without a trace. Balances for which work is open are left to that.
 */
export async function compareBalances(
  tools: TrackerTools,
  page: readonly ComparedBalance[],
  signal: AbortSignal,
): Promise<BalanceDifference[]> {
  const { db, clock, network_id, chain, lease } = tools
  const cursor = await findCursor(db, network_id)
  if (!cursor) return []
  const newest = { number: cursor.block_number, hash: cursor.block_hash }
  const { all, at } = await readPage(tools, page, newest, signal)
  if (all.length === 0) return []
  // Reading is done; from here on everything happens in one short transaction.
  const now = new Date(clock.now())
  return await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    await awaitCursor(trx, network_id)
    // Far behind the head all work waits there, and this can wait too.
    if (await hasBacklog(trx, network_id)) return []
    await holdRead(trx, tools, { at, newest })
    // Balances with open work are not in the result: that work will read them anyway.
    const stored = new Map(
      (await findComparable(trx, all)).map((balance) => [keyOfWork(balance), balance]),
    )
    const differing = all.flatMap((read) => {
      const known = stored.get(keyOfWork(read))
      if (!known) return []
      // `null` means that the contract fails. It is stored as unreadable, not as zero.
      const isSame = read.balance === null ? known.is_unreadable : read.balance === known.balance
      if (isSame && (read.balance === null) === known.is_unreadable) return []
      return [{ read, known }]
    })
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
    const differences = differing.map(({ read, known }) => ({
      ...{ organization_id: read.organization_id, network_id, wallet_id: read.wallet_id },
      ...{ address: read.address, asset_id: read.asset_id, block_number: read.as_of_block },
      expected: known.balance,
      found: read.balance,
      reason: reasonOf(read, known),
    }))
    await insertDifferences(trx, differences, { network_id, now })
    return differences
  })
}

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
  page: readonly ComparedBalance[],
  newest: BlockRef,
  signal: AbortSignal,
): Promise<{ all: Read[]; at: BlockRef[] }> {
  const { chain } = tools
  const all: Read[] = []
  const at: BlockRef[] = []
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
      for (const [index, reading] of readings.entries()) {
        const { confirmation } = pairs[index]!
        all.push({ ...reading, confirmation, isKept: confirmation > deepConfirmation })
      }
    } catch (error) {
      // The next round comes by again.
      if (!(error instanceof BlockGoneError || error instanceof BlockMissingError)) throw error
    }
  }
  return { all, at }
}
