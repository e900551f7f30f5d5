import {
  type BlockHeader,
  type BlockRef,
  type Chain,
  type ChainBlock,
  type ChainEvent,
  ChainUnavailableError,
  type Family,
  type Position,
} from '../../chains/chain.ts'
import type { AssetKey } from '../../contract/records/assets.ts'
import { inSpan } from '../../lib/tracing.ts'
import { insertBacklog } from '../../storage/balances/backlog.ts'
import { insertBalanceChanges } from '../../storage/balances/changes.ts'
import { hasReadings, reopenAllBalances } from '../../storage/balances/reopening.ts'
import type { BulkRow } from '../../storage/pg/bulk.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  type CursorRow,
  insertBlocks,
  lockCursor,
  setCursor,
  trimBlocks,
} from '../../storage/tracking/blocks.ts'
import { extendGap, insertGap, syncGapEvent } from '../../storage/tracking/gaps.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import {
  insertNewTransfers,
  insertTransfers,
  updateTransfers,
} from '../../storage/transfers/transfers.ts'
import { ensureAssets } from '../../storage/wallets/assets.ts'
import { enqueueMetadata } from '../../storage/wallets/token-metadata.ts'
import { hasBacklogs } from '../balances/backlog.ts'
import { confirmedPart, followBlocks } from '../sender/follow.ts'
import { type AssertChecked, storeChecked } from './checked.ts'
import { lacksOf } from './lacking.ts'
import { addTokenRules, lookUp, matchBlock } from './match.ts'
import { noteTransfers, noteUpdates, type Released, releaseWithBlock } from './notifications.ts'
import { reopenAfterGap, reopenUnlessLately } from './reopening.ts'
import type { TrackerTools } from './tools.ts'

/** The cursor is not where the writer expected it: another process has moved it. */
export class CursorMovedError extends Error {
  override name = 'CursorMovedError'
}

/** What storing some blocks came to. */
export type Stored = {
  transfers: number
  notifications: Pick<Released, 'count' | 'isMore'>
  unknown_kinds: Record<string, number>
}

/** Begins a write: fenced by the lease, alone at the cursor, which must be where it is expected. */
export async function beginWrite(
  trx: Db,
  { network_id, lease }: Pick<TrackerTools, 'network_id' | 'lease'>,
  expected: { number: number; hash: Buffer } | undefined,
): Promise<CursorRow | undefined> {
  await assertLease(trx, lease.name, lease.epoch)
  const cursor = await lockCursor(trx, network_id)
  const same = cursor
    ? cursor.block_number === expected?.number && cursor.block_hash.equals(expected.hash)
    : expected === undefined
  if (!same) throw new CursorMovedError(`the cursor is at ${cursor?.block_number ?? 'no block'}`)
  return cursor
}

/**
 * Stores consecutive blocks in one transaction: block, transfers, balance work, notifications and
 * cursor. A crash anywhere means to do it again, and doing it again changes nothing. Balance work that
 * is due up to `backlogUntil` waits together, because it is not read before the cursor is there.
 */
export const storeBlocks = (
  tools: TrackerTools,
  blocks: readonly ChainBlock[],
  options: { after?: Position; backlogUntil?: number; signal?: AbortSignal } = {},
): Promise<Stored> =>
  storeChecked(
    (assertChecked) => storeOnce(tools, blocks, { ...options, assertChecked }),
    options.signal,
  )

async function storeOnce(
  // One database transaction. The order of the writes follows the lock order of
  // docs/architecture.md: lease and cursor first, webhooks last.
  tools: TrackerTools,
  blocks: readonly ChainBlock[],
  {
    after,
    backlogUntil = -1,
    assertChecked,
  }: { after?: Position; backlogUntil?: number; assertChecked: AssertChecked },
): Promise<Stored> {
  const { db, clock, network_id, chain, window, releaseLimits: limits, tracing } = tools
  const first = blocks[0]!
  const last = blocks.at(-1)!
  const write = async (trx: Db): Promise<Stored> => {
    await beginWrite(trx, tools, { number: first.number - 1, hash: first.parent_hash })
    const now = new Date(clock.now())
    const unknown_kinds: Record<string, number> = {}
    // Matching reads only. The rows that it finds stay valid until the commit, because an operation
    // that changes what is tracked takes the cursor exclusively too.
    const { contents, rows } = await inSpan(tracing?.open('match'), async () => {
      const { tracked, matches: named } = await lookUp(trx, { network_id, chain }, blocks)
      assertChecked(blocks, tracked)
      const contents = blocks.map((block) => ({ block, content: block.decode(tracked) }))
      const matches = await addTokenRules(trx, chain, named, contents)
      return {
        contents,
        rows: contents.map(({ block, content }) => matchBlock(block, content, matches)),
      }
    })

    const assets = new Map(rows.flatMap((row) => [...row.assets]))
    // Before transfers and balances, whose rows refer to the assets.
    await ensureAssets(trx, network_id, [...assets.values()], now)
    const transfers = rows.flatMap((row) => row.transfers)
    if (chain.tokens?.readTokenUris)
      await enqueueMetadata(trx, network_id, itemsIn(chain, assets, transfers))
    // At the head the two statements more would cost more than they save.
    const insert = blocks.length > 1 ? insertNewTransfers : insertTransfers
    const inserted = await insert(trx, transfers)
    const changes = rows.flatMap((row) => row.changes)
    // Far behind the head an address is touched by many blocks. Its balance is read once at the
    // end, so the pairs are collected in a backlog instead of one row per block.
    const until = hasBacklogs(chain) ? backlogUntil : -1
    const isBacklog = ({ due_block, ahead }: (typeof changes)[number]) =>
      due_block <= until && !ahead
    const backlog = changes.filter(isBacklog)
    const isNoted = await insertBacklog(trx, { network_id, changes: backlog, assets })
    await insertBalanceChanges(
      trx,
      isNoted ? changes.filter((change) => !isBacklog(change)) : changes,
    )
    const context = { network_id, service: chain.service, now, limits: tools.fanOutLimits }
    let isLeft = await inSpan(tracing?.open('notify', { transfers: transfers.length }), () =>
      noteTransfers(trx, context, blocks, transfers),
    )
    for (const { block, content } of contents) {
      const undecoded_transaction = content.undecoded?.length ?? 0
      const kinds = {
        ...content.unknown_kinds,
        ...(undecoded_transaction > 0 && { undecoded_transaction }),
      }
      for (const [kind, count] of Object.entries(kinds))
        unknown_kinds[kind] = (unknown_kinds[kind] ?? 0) + count
      // Transfers of earlier blocks that this block changes (T: a bounced message). Small and rare,
      // so one statement per block.
      const updated = await updateTransfers(trx, network_id, content.updates ?? [])
      if (await noteUpdates(trx, context, block, updated)) isLeft = true
    }

    await insertBlocks(
      trx,
      blocks.map(({ number, hash, parent_hash, time }) => ({
        network_id,
        block_number: number,
        block_hash: hash,
        parent_hash,
        block_time: new Date(time),
      })),
    )
    const known = contents.map(({ block, content }) => ({
      number: block.number,
      lacks: lacksOf(block, content),
    }))
    await noteIncomplete(trx, { network_id, now }, known, after)
    // Trim once in 32 blocks: a delete per block would cost more than the rows that it saves.
    if (Math.floor(last.number / 32) > Math.floor((first.number - 1) / 32))
      await trimBlocks(trx, network_id, {
        number: last.number - window,
        before: new Date(last.time - windowMs),
        lowest: last.number - largestWindow,
      })
    await setCursor(trx, {
      network_id,
      block_number: last.number,
      block_hash: last.hash,
      detail: last.detail,
      update_time: now,
    })
    // Managed transactions move with the block that contains them, so that their state never
    // contradicts the stored transfers.
    const part = confirmedPart(limits, limits?.withBlock)
    if (await followBlocks(trx, { network_id, now, limits: tools.fanOutLimits, part }, blocks))
      isLeft = true
    const due = { network_id, chain, head: last.number, now, ...(limits && { limits }) }
    const { count, isMore } = await releaseWithBlock(trx, due)
    const notifications = { count, isMore: isMore || isLeft }
    return { transfers: inserted, notifications, unknown_kinds }
  }
  return await inSpan(tracing?.open('commit', { blocks: blocks.length }), () =>
    db.transaction().execute(write),
  )
}

// On a chain with fast blocks the window of blocks is short in time. Keep the blocks of the last
// hour as well.
const windowMs = 3_600_000

/** How many blocks are kept at most. */
export const largestWindow = 20_000

/** A block of which not everything is known is a gap; after it, every balance is read again. */
async function noteIncomplete(
  trx: Db,
  { network_id, now }: { network_id: number; now: Date },
  blocks: readonly { number: number; lacks: string | undefined }[],
  after: Position | undefined,
): Promise<void> {
  let lacked = after?.lacks !== undefined
  for (const { number: block_number, lacks: reason } of blocks) {
    if (reason !== undefined) await extendGap(trx, { network_id, block_number, reason, now })
    else if (lacked) await reopenUnlessLately(trx, { network_id, block_number, now })
    lacked = reason !== undefined
  }
  if (blocks.some(({ lacks }) => lacks !== undefined)) await syncGapEvent(trx, network_id, now)
}

/** The items of collections, which have descriptions of their own, each with one of the organizations that have it. */
const itemsIn = (
  { standards }: Pick<Family, 'standards'>,
  assets: ReadonlyMap<string, AssetKey>,
  transfers: readonly BulkRow<'transfer'>[],
): { asset_id: string; organization_id: string | null }[] => {
  const collections = new Set(
    Object.values(standards ?? {}).flatMap(({ isCollection, asset_type }) =>
      isCollection ? [asset_type] : [],
    ),
  )
  const items = [...assets].filter(([, { asset_type }]) => collections.has(asset_type))
  if (items.length === 0) return []
  const owners = new Map(
    transfers.map(({ asset_id, organization_id }) => [asset_id, organization_id]),
  )
  return items.map(([asset_id]) => ({ asset_id, organization_id: owners.get(asset_id) ?? null }))
}

/** Begins at a block without looking into it: what happened before it is not tracked. */
export async function storeBeginning(tools: TrackerTools, block: ChainHeader): Promise<void> {
  const { db, clock, network_id } = tools
  await db.transaction().execute(async (trx) => {
    await beginWrite(trx, tools, undefined)
    const now = new Date(clock.now())
    const { number: block_number, hash: block_hash, parent_hash, time } = block
    await insertBlocks(trx, [
      { network_id, block_number, block_hash, parent_hash, block_time: new Date(time) },
    ])
    await setCursor(trx, { network_id, block_number, block_hash, update_time: now })
    // Balances that were read before this block lack the changes in between. No reading that began before it is stored
    // after it, so where there is none now, none of those that come has to be read a second time.
    if (await hasReadings(trx, network_id))
      await reopenAllBalances(trx, { network_id, block_number })
  })
}

type ChainHeader = Pick<ChainBlock, 'number' | 'hash' | 'parent_hash' | 'time'>

/** Records a gap of blocks that no node can serve, continues after them and schedules a read of every balance. */
export async function storeGap(
  tools: TrackerTools,
  after: { number: number; hash: Buffer },
  { from, to, reason }: Extract<ChainEvent, { kind: 'gap' }>,
): Promise<void> {
  const { db, clock, network_id, chain } = tools
  // The cursor needs a stored block where blocks can leave the chain: without its row no balance that is
  // read meanwhile can be held, and a reorganization cannot find it as the common block.
  // Before the transaction: no node is called while locks are held.
  const end = chain.reorganizes ? await findHeader(chain, to) : undefined
  await db.transaction().execute(async (trx) => {
    await beginWrite(trx, tools, after)
    const now = new Date(clock.now())
    if (end)
      await insertBlocks(trx, [
        {
          network_id,
          block_number: end.number,
          block_hash: end.hash,
          parent_hash: end.parent_hash,
          block_time: new Date(end.time),
        },
      ])
    await insertGap(trx, {
      network_id,
      from_block: from,
      to_block: to.number,
      reason,
      create_time: now,
    })
    await syncGapEvent(trx, network_id, now)
    await reopenAfterGap(trx, { network_id, block_number: to.number + 1, now })
    await setCursor(trx, {
      network_id,
      block_number: to.number,
      block_hash: to.hash,
      update_time: now,
    })
    await releaseWithBlock(trx, { network_id, chain, head: to.number, now })
  })
}

/** The wait for one header, before a gap is stored without it. */
const headerMs = 10_000

/** The header of a block; undefined where no node can give it now, or another block has its place. */
async function findHeader(
  chain: Chain,
  { number, hash }: BlockRef,
): Promise<BlockHeader | undefined> {
  try {
    const header = await chain.header(number, AbortSignal.timeout(headerMs))
    return header?.hash.equals(hash) ? header : undefined
  } catch (error) {
    if (error instanceof ChainUnavailableError) return undefined
    throw error
  }
}
