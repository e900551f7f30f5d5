import { randomUUIDv7 } from 'node:crypto'
import type { BlockRef } from '../../chains/chain.ts'
import { BlockGoneError, BlockMissingError, ChainUnavailableError } from '../../chains/chain.ts'
import { dueBlockOf } from '../../domain/wallets/transfer-view.ts'
import { rememberReadings } from '../../storage/balances/balances.ts'
import {
  applyDeltas,
  type DueBalance,
  deepConfirmation,
  deferBalanceChanges,
  listDueBalances,
  postponeEarly,
} from '../../storage/balances/changes.ts'
import type { DuePage } from '../../storage/balances/due-page.ts'
import { applyPending, findStanding } from '../../storage/balances/pending.ts'
import { isLowering, lowerPage, reopenPage } from '../../storage/balances/reopening.ts'
import type { Db } from '../../storage/pg/database.ts'
import { awaitCursor } from '../../storage/tracking/blocks.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { settleBacklog } from './backlog.ts'
import { type Patience, tryOnce } from './patience.ts'
import { type Group, readGroup } from './read-group.ts'
import { blockFor, distinctPairs, findRef, keyOfWork } from './read-pairs.ts'

// Bounds of one round. Each transaction stays short, because blocks wait for the cursor lock.
const usualRows = 2_000
// Of those that are read apart, so that a round which has any ends soon.
const mostApart = 50
// Of net changes that wait for a reading, so many pages are set aside at once: readings may be slow, or fail.
const mostSetAside = 20
// What is read again goes behind everything that is due, and new work waits for one page at the most.
// 20,000 addresses without a balance take 40 to 80 ms.
const reopenedPerRound = { limit: 1_000, most_addresses: 20_000 }

/**
 * Brings the balances up to date that the cursor has made due: adds net changes, or reads at the
 * newest block that has the wallet's confirmation, once per address and asset however many wallets
 * and blocks ask for it. Says how many pairs were done; call it again until there are none.
 */
export async function settleBalances(
  tools: TrackerTools,
  signal: AbortSignal,
  patience: Patience = tryOnce,
): Promise<number> {
  const { db, clock, network_id, chain } = tools
  // Without a lock: a cursor that moves meanwhile makes only more work due.
  const standing = await findStanding(db, network_id)
  if (!standing) return 0
  const head = standing.block_number
  const newest = { number: head, hash: standing.block_hash }
  // Before any reading: it would be refused as older than what is gone.
  const lowered = standing.has_reopening ? await lowerBalances(tools) : 0
  if (lowered > 0) return lowered
  let done = 0
  const due = { network_id, head, limit: tools.balanceRows ?? usualRows }
  if (standing.has_pending) done += await write(tools, (trx) => confirmPending(trx, tools, due))
  // These need no node: they are added also while all nodes are down.
  if (chain.balances === 'delta' && standing.has_changes) done += await addNetChanges(tools, due)
  // A pair may be due twice: to be corrected at an early block, and to be read ahead at the newest one.
  const listed = standing.has_changes ? await listDueBalances(db, due) : []
  const { early = [], rows = [] } = Object.groupBy(listed, ({ is_early, confirmation }) =>
    is_early && chain.balances === 'read' && confirmation <= deepConfirmation ? 'early' : 'rows',
  )
  if (early.length > 0) await write(tools, (trx) => postponeEarly(trx, early))
  done += early.length
  const { ahead = [], others = [] } = Object.groupBy(
    // No node may have the state by the time when a wallet with so many confirmations shows the block.
    rows.map((row) => (row.is_early ? { ...row, ahead: true } : row)),
    ({ ahead }) => (ahead ? 'ahead' : 'others'),
  )
  const unread = [...distinctPairs(others), ...distinctPairs(ahead)]
  const { apart = [], usual = [] } = Object.groupBy(unread, (pair) =>
    chain.isReadApart?.(pair) ? 'apart' : 'usual',
  )
  // Moves the rest behind other work of the same block; the next rounds take the next ones.
  await deferBalanceChanges(db, apart.slice(mostApart), head)
  // The first one is thrown at the end, so that the loop above backs off.
  const errors: unknown[] = []
  // What fails or is slow is read when everything else is stored.
  for (const pairs of [usual, apart.slice(0, mostApart)])
    done += await readDue(tools, { pairs, newest, patience, errors }, signal)
  try {
    done += await settleBacklog(tools, newest, signal)
  } catch (error) {
    if (!isRepeatable(error)) throw error
    errors.push(error)
  }
  // After a gap every balance of the network is read again. That waits until nothing else is due.
  if (standing.has_reopening && done + unread.length === 0)
    done += await write(tools, (trx) =>
      reopenPage(trx, { network_id, head, now: new Date(clock.now()), ...reopenedPerRound }),
    )
  // One block that cannot be read must not hold up the rest, and must not be kept quiet either.
  if (errors.length > 0) throw errors[0]
  return done
}

/**
 * Lowers balances of blocks that are gone to the last one that is left, a page at a time, and says how many it looked at.
 * It reads none, so it does not wait until the tracker has caught up.
 */
export async function lowerBalances(tools: TrackerTools): Promise<number> {
  const { db, clock, network_id } = tools
  if (!(await isLowering(db, network_id))) return 0
  return await write(tools, (trx) =>
    lowerPage(trx, { network_id, ...reopenedPerRound, now: new Date(clock.now()) }),
  )
}

/** A database transaction under the lease, during which no block is stored. */
const write = async <result>(
  { db, network_id, lease }: TrackerTools,
  act: (trx: Db) => Promise<result>,
): Promise<result> =>
  await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    await awaitCursor(trx, network_id)
    return await act(trx)
  })

/** Adds a page of net changes, or the first one that has any which can be added. */
async function addNetChanges(tools: TrackerTools, due: DuePage): Promise<number> {
  let done = 0
  for (let pages = 0; pages < mostSetAside; pages++) {
    const now = new Date(tools.clock.now())
    const { count, set_aside } = await write(tools, (trx) => applyDeltas(trx, { ...due, now }))
    done += count
    if (set_aside === 0) break
  }
  return done
}

async function confirmPending(
  trx: Db,
  { clock, chain }: TrackerTools,
  due: DuePage,
): Promise<number> {
  const { applied, count } = await applyPending(trx, { ...due, now: new Date(clock.now()) })
  if (chain.reorganizes)
    await rememberReadings(trx, applied, { network_id: due.network_id, reading_id: randomUUIDv7() })
  return count
}

type Due = {
  pairs: readonly DueBalance[]
  newest: BlockRef
  patience: Patience
  errors: unknown[]
}

/** Reads pairs, each at its block, and says how many were done. */
async function readDue(
  tools: TrackerTools,
  { pairs: due, newest, patience, errors }: Due,
  signal: AbortSignal,
): Promise<number> {
  const { db, chain } = tools
  const head = newest.number
  const isAhead = ({ ahead, confirmation, block_number }: DueBalance): boolean =>
    ahead === true &&
    (confirmation > deepConfirmation || head < dueBlockOf(block_number, confirmation))
  const { ahead = [], confirmed = [] } = Object.groupBy(due, (pair) =>
    chain.balances === 'read' && isAhead(pair) ? 'ahead' : 'confirmed',
  )
  // Work to be read ahead may be confirmed by now: then it is the same reading as that of other work.
  const groups = Map.groupBy(distinctPairs(confirmed), (pair) =>
    chain.balances === 'delta' ? head : blockFor(pair, head),
  )
  let done = 0
  const failed = new Set<string>()
  const read = async (group: Group): Promise<void> => {
    await readGroup(tools, group, signal)
    done += group.pairs.length
  }
  // Collects the error instead of throwing it: one unreadable block must not stop the other groups.
  const attempt = async (number: number, act: () => Promise<void>): Promise<boolean> => {
    signal.throwIfAborted()
    try {
      await act()
      patience.succeed(number)
      return true
    } catch (error) {
      if (!isRepeatable(error)) throw error
      errors.push(error)
      return false
    }
  }
  for (const [number, pairs] of groups) {
    let at: BlockRef | undefined
    const isRead = await attempt(number, async () => {
      at = number === head ? newest : await findRef(tools, number, signal)
      await read({ at, newest, pairs, isKept: false })
    })
    if (isRead) continue
    const isGone = await isStateGone(tools, errors.at(-1), at, signal)
    if (!isGone || !patience.isOver(number)) {
      for (const pair of pairs) failed.add(keyOfWork(pair))
      continue
    }
    // No node has the block any more, or its state. The newest one is read instead, and the balance is
    // kept until that is confirmed; where there is none, the next block is read.
    if (number < head) await attempt(head, () => read({ at: newest, newest, pairs, isKept: true }))
    else await deferBalanceChanges(db, pairs, head)
  }
  // Last, and without pairs that are still to be corrected: what is read ahead settles all their work.
  const rest = failed.size > 0 ? ahead.filter((pair) => !failed.has(keyOfWork(pair))) : ahead
  if (rest.length > 0)
    await attempt(head, () => read({ at: newest, newest, pairs: rest, isKept: true }))
  return done
}

const isRepeatable = (error: unknown): boolean =>
  error instanceof BlockGoneError || error instanceof ChainUnavailableError

/** Whether an error says that no node has a block or its state, although it is on the chain. */
async function isStateGone(
  { chain }: TrackerTools,
  error: unknown,
  at: BlockRef | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (error instanceof BlockMissingError) return true
  if (!(error instanceof BlockGoneError) || !at) return false
  try {
    // A header that is still canonical proves that only the state is missing. No error text decides it,
    // because every client words it differently (docs/decisions/balances.md).
    return (await chain.header(at.number, signal))?.hash.equals(at.hash) === true
  } catch (thrown) {
    // One that no node has any more did not leave the chain.
    if (thrown instanceof BlockMissingError) return true
    if (isRepeatable(thrown)) return false
    throw thrown
  }
}
