// Reading balances on request, beside the tracker. A block that is stored meanwhile must neither be counted twice nor be
// missed: the reading is stored with the block that it is of, under the cursor lock in share mode, and blocks after it
// become work.

import { randomUUIDv7 } from 'node:crypto'
import {
  type BalanceQuery,
  type BalanceReading,
  BlockGoneError,
  BlockMissingError,
  type BlockRef,
  type Chain,
  ChainUnavailableError,
} from '../../chains/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import { rememberReadings, storeReadings } from '../../storage/balances/balances.ts'
import {
  aheadBlockOf,
  firstPostponement,
  insertBalanceChanges,
} from '../../storage/balances/changes.ts'
import { insertPending } from '../../storage/balances/pending.ts'
import type { Db } from '../../storage/pg/database.ts'
import { awaitCursor, findBlocks, holdBlock } from '../../storage/tracking/blocks.ts'
import { assetIdOf, ensureAssets } from '../../storage/wallets/assets.ts'
import { dueBlockOf } from './transfer-view.ts'

type Tools = { db: Db; clock: Clock; chain: Chain; signal: AbortSignal }

/** Which balances of one wallet. */
export type WalletQueries = {
  organization_id: string
  network_id: number
  wallet_id: string
  confirmation: number
  queries: readonly BalanceQuery[]
}

/** The newest block with that many confirmations, counted from the last one that was stored. */
async function confirmedBlock(
  { db, chain, signal }: Tools,
  network_id: number,
  { confirmation, head }: { confirmation: number; head: BlockRef },
): Promise<BlockRef> {
  // Nodes of such chains answer for the present only.
  if (chain.balances === 'delta') return head
  const number = Math.max(0, head.number - Math.max(confirmation, 1) + 1)
  if (number === head.number) return head
  const [stored] = await findBlocks(db, network_id, [number])
  if (stored) return { number, hash: stored.block_hash }
  return (await chain.header(number, signal)) ?? head
}

type Read = { at: BlockRef; readings: BalanceReading[]; isKept: boolean }

/**
 * Reads at the confirmed block; where no node has that or its state, at the newest one. What is not
 * confirmed is kept until it is.
 */
async function read(tools: Tools, wanted: WalletQueries, head: BlockRef): Promise<Read> {
  const { chain, signal } = tools
  const { network_id, confirmation, queries } = wanted
  const isDelta = chain.balances === 'delta'
  try {
    const at = await confirmedBlock(tools, network_id, { confirmation, head })
    const readings = await chain.readBalances(queries, at, signal)
    return { at, readings, isKept: isDelta && confirmation > 1 }
  } catch (error) {
    // Nodes keep some states only. The newest one they have.
    const isGone = error instanceof BlockGoneError || error instanceof BlockMissingError
    if (!isGone || isDelta || confirmation <= 1) throw error
    return { at: head, readings: await chain.readBalances(queries, head, signal), isKept: true }
  }
}

/** Reads balances of a wallet at its confirmed block and stores them. */
export async function readAndStore(tools: Tools, wanted: WalletQueries): Promise<void> {
  const { db, clock, chain } = tools
  const { organization_id, network_id, wallet_id, confirmation, queries } = wanted
  // Waits until no block is being stored: what comes after is matched with what is registered now.
  const cursor = await awaitCursor(db, network_id)
  const head = cursor
    ? { number: cursor.block_number, hash: cursor.block_hash }
    : await chain.head(tools.signal)
  const { at, readings, isKept } = await read(tools, wanted, head)
  // A node that lags behind our own cursor would give a baseline from which changes are missing.
  if (readings.some(({ block_number }) => block_number < at.number))
    throw new ChainUnavailableError(`no node has reached block ${at.number}`)
  const now = new Date(clock.now())
  // Outside of the transaction: asset rows are shared, and nothing may wait for them.
  const assets = new Map(queries.map(({ asset }) => [assetIdOf(network_id, asset), asset]))
  await ensureAssets(db, network_id, [...assets.values()], now)
  await db.transaction().execute(async (trx) => {
    const begun = await awaitCursor(trx, network_id)
    // The reading may be of a block before the first one: its changes since would be missing. The job is
    // repeated.
    if (begun && !cursor) throw new ChainUnavailableError('tracking began while balances were read')
    if (chain.reorganizes && !(await holdBlock(trx, network_id, at)))
      throw new BlockGoneError(`block ${at.number} left the chain while balances were read`)
    // A node that changes branches may answer for a block of both with the one that it is leaving.
    if (cursor && chain.reorganizes && !(await holdBlock(trx, network_id, head)))
      throw new ChainUnavailableError('the chain reorganized while balances were read')
    const rows = readings.map(({ balance, block_number }, index) => {
      const { address, asset } = queries[index]!
      return {
        wallet_id,
        organization_id,
        address,
        asset_id: assetIdOf(network_id, asset),
        asset_type: asset.asset_type,
        contract_address: asset.contract_address,
        balance,
        as_of_block: block_number,
        since_block: block_number,
      }
    })
    const kept = isKept ? rows.filter((row) => !isFailing(row)) : []
    // A value that was not read is no baseline: net changes would be added to it.
    const stored = (isKept ? rows.filter(isFailing) : rows).filter(
      (row) => chain.balances === 'read' || !isFailing(row),
    )
    await insertPending(trx, kept, network_id)
    await storeReadings(trx, stored, { network_id, now })
    if (chain.reorganizes)
      await rememberReadings(trx, stored, { network_id, reading_id: randomUUIDv7() })
    // Blocks after the one that was read may have changed it while it was not tracked: no other code
    // would notice.
    const last = Math.max(head.number, begun?.block_number ?? 0)
    const open = at.number < last && chain.balances === 'read' ? rows : rows.filter(isFailing)
    const ahead = aheadBlockOf(last, confirmation)
    await insertBalanceChanges(
      trx,
      open.map(({ address, asset_id, ...row }) => ({
        ...{ wallet_id, organization_id, network_id, address, asset_id },
        block_number: last,
        due_block: isFailing(row)
          ? last + firstPostponement
          : (ahead ?? dueBlockOf(last, confirmation)),
        ahead: ahead === undefined ? null : true,
      })),
    )
  })
}

const isFailing = ({ balance }: { balance: bigint | null }): boolean => balance === null
