import { keyOf } from '../../lib/bytes.ts'
import type { Log } from '../../lib/log.ts'
import type { BulkRow } from '../../storage/pg/bulk.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import {
  type BlockRange,
  finishReread,
  holdRereads,
  listRereads,
} from '../../storage/tracking/rereads.ts'
import { findLateImports } from '../../storage/wallets/assets.ts'
import type { HistoryTools } from './history.ts'
import { createRangeStore } from './range-store.ts'

/**
 * Makes the function that reads some blocks again in which token accounts, found late, may have moved
 * tokens (T). Only their transfers are stored; they are notified as backfilled. Gives whether something
 * was done. What no node has now is asked for again later, with growing pauses.
 */
export function createReread(
  tools: HistoryTools,
  options: { blocks: number; firstPauseMs: number; lastPauseMs: number; log: Log },
): (signal: AbortSignal) => Promise<boolean> {
  const { db, clock, network_id, chain } = tools
  const { blocks: most, firstPauseMs, lastPauseMs, log } = options
  const store = createRangeStore(tools)
  // In memory only: after a restart the blocks are asked for at once, and from the lowest on, which is harmless.
  let failures = 0
  let nextTime = 0
  let position = 0

  const readSome = async (range: BlockRange, signal: AbortSignal): Promise<void> => {
    const { transfers } = await store(range, signal, (run) => ({
      begin: (trx) => holdRereads(trx, network_id),
      choose: (trx, found) => chooseLate(trx, network_id, found),
      note: (trx) => finishReread(trx, { network_id, ...run }),
    }))
    if (transfers > 0)
      log.info({ chain: chain.service, network_id, ...range, transfers }, 'late tokens found')
  }

  return async (signal) => {
    if (!chain.tokenAccounts || clock.now() < nextTime) return false
    const ranges = await listRereads(db, network_id)
    const head = (await findCursor(db, network_id))?.block_number ?? -1
    const due = ranges.filter(({ from }) => from <= head)
    // Round all blocks: a job with many pages adds its first ones again with each page, and the others would never be read. Neither
    // do blocks that no node has delay the others.
    const range = due.find(({ to }) => Math.min(to, head) >= position) ?? due[0]
    if (!range) return false
    const last = Math.min(range.to, head)
    const from = position > last ? range.from : Math.max(range.from, position)
    const to = Math.min(last, from + most - 1)
    position = to + 1
    try {
      await readSome({ from, to }, signal)
      failures = 0
      return true
    } catch (error) {
      signal.throwIfAborted()
      log.debug({ err: error, chain: chain.service, from }, 'blocks cannot be read again yet')
      nextTime = clock.now() + Math.min(firstPauseMs * 2 ** Math.min(failures, 20), lastPauseMs)
      failures++
      return false
    }
  }
}

/** The transfers of tokens that were tracked late, after the block from which they count. */
async function chooseLate(
  trx: Db,
  network_id: number,
  transfers: BulkRow<'transfer'>[],
): Promise<BulkRow<'transfer'>[]> {
  const addresses = transfers.map(({ address }) => address)
  const late = await findLateImports(trx, network_id, addresses)
  const since = new Map(
    late.map((one) => [
      `${one.organization_id}/${keyOf(one.address)}/${one.asset_id}`,
      one.since_block,
    ]),
  )
  // Transfers up to the block of the rule do not count: the token was not tracked then.
  return transfers.filter(({ organization_id, address, asset_id, block_number }) => {
    const first = since.get(`${organization_id}/${keyOf(address)}/${asset_id}`)
    return first !== undefined && block_number > first
  })
}
