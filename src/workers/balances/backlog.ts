import { randomUUIDv7 } from 'node:crypto'
import { BlockGoneError, BlockMissingError, type BlockRef, type Chain } from '../../chains/chain.ts'
import {
  type Backlog,
  expandBacklogs,
  listDueBacklogs,
  settleBacklogs,
} from '../../storage/balances/backlog.ts'
import { type Reading, rememberReadings, storeTracked } from '../../storage/balances/balances.ts'
import { firstPostponement, insertBalanceChanges } from '../../storage/balances/changes.ts'
import { awaitCursor, lockCursor } from '../../storage/tracking/blocks.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { blockFor, distinctPairs, findRef, holdRead, keyOfWork, readPairs } from './read-pairs.ts'

// About 40 calls of Multicall3. The cursor is locked only while the result is stored.
const pairsPerRound = 8_000

/** Whether a chain's work may go as backlogs: net changes (S) and accounts of tokens (T) are more than a pair. */
export const hasBacklogs = (chain: Chain): boolean =>
  chain.balances === 'read' && !chain.tokenAccounts

/**
 * Reads what the backlogs name that the cursor has made due, and stores it in one transaction that
 * takes them away. Of a backlog that is gone by then nothing is stored: it has become ordinary work,
 * or was taken back. Says how many pairs were done.
 */
export async function settleBacklog(
  tools: TrackerTools,
  newest: BlockRef,
  signal: AbortSignal,
): Promise<number> {
  const { db, network_id, chain } = tools
  const head = newest.number
  if (!hasBacklogs(chain)) return 0
  const backlogs = await listDueBacklogs(db, { network_id, head, pairs: pairsPerRound })
  if (backlogs.length === 0) return 0
  const pairs = distinctPairs(backlogs.flatMap((backlog) => backlog.pairs))
  try {
    const at: BlockRef[] = []
    const readings: Reading[] = []
    // Wallets differ in confirmation, so the pairs of one backlog may be read at several blocks.
    for (const [number, some] of Map.groupBy(pairs, (pair) => blockFor(pair, head))) {
      signal.throwIfAborted()
      const block = number === head ? newest : await findRef(tools, number, signal)
      at.push(block)
      readings.push(...(await readPairs(chain, some, block, signal)))
    }
    await store(tools, { backlogs, readings, at, newest })
    return pairs.length
  } catch (error) {
    // Something of it cannot be read: as ordinary work it keeps nothing else waiting.
    const isPartly = error instanceof BlockGoneError || error instanceof BlockMissingError
    if (isPartly) await expand(tools, backlogs)
    throw error
  }
}

async function store(
  tools: TrackerTools,
  read: { backlogs: Backlog[]; readings: Reading[]; at: BlockRef[]; newest: BlockRef },
): Promise<void> {
  const { db, clock, network_id, chain, lease } = tools
  const { backlogs } = read
  const now = new Date(clock.now())
  await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    // Exclusive, unlike other readings: `storeTracked` relies on it that no balance is created meanwhile.
    await lockCursor(trx, network_id)
    await holdRead(trx, tools, read)
    const ids = backlogs.map(({ backlog_id }) => backlog_id)
    // Locks and removes the backlogs. Those that a rollback expanded meanwhile are missing in the
    // result.
    const open = await settleBacklogs(trx, network_id, ids)
    const readings = open.size === backlogs.length ? read.readings : namedBy(open)
    await storeTracked(trx, readings, now)
    // A contract that fails becomes ordinary work of a later block. It must not keep the backlog open.
    const failing = readings.filter(({ balance }) => balance === null)
    await insertBalanceChanges(
      trx,
      failing.map(({ wallet_id, address, asset_id, organization_id, as_of_block }) => ({
        ...{ wallet_id, address, asset_id, organization_id, network_id },
        block_number: as_of_block,
        due_block: read.newest.number + firstPostponement,
      })),
    )
    if (chain.reorganizes)
      await rememberReadings(trx, readings, { network_id, reading_id: randomUUIDv7() })
  })

  function namedBy(open: ReadonlySet<string>): Reading[] {
    const named = new Set(
      backlogs
        .filter(({ backlog_id }) => open.has(backlog_id))
        .flatMap(({ pairs }) => pairs.map(keyOfWork)),
    )
    return read.readings.filter((reading) => named.has(keyOfWork(reading)))
  }
}

async function expand(
  { db, network_id, lease }: TrackerTools,
  backlogs: readonly Backlog[],
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    await awaitCursor(trx, network_id)
    await expandBacklogs(
      trx,
      network_id,
      backlogs.map(({ backlog_id }) => backlog_id),
    )
  })
}
