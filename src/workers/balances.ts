import { randomUUIDv7 } from 'node:crypto'
import type { BlockRef } from '../chains/chain.ts'
import { BlockGoneError, BlockMissingError, ChainUnavailableError } from '../chains/chain.ts'
import {
  applyDeltas,
  type DueBalance,
  deferBalanceChanges,
  listDueBalances,
  postponeBalanceChanges,
  settleBalanceChanges,
} from '../storage/balance-changes.ts'
import { type Reading, rememberReadings, storeReadings } from '../storage/balances.ts'
import { awaitCursor, findCursor } from '../storage/blocks.ts'
import { assertLease } from '../storage/leases.ts'
import { settleBacklog } from './backlog.ts'
import { blockFor, distinctPairs, findRef, holdRead, keyOfWork, readPairs } from './read-pairs.ts'
import type { TrackerTools } from './tracker-store.ts'

const rowsPerRound = 2_000
// Of those that are read apart, so that a round which has any ends soon.
const mostApart = 50

/**
 * Brings the balances up to date that the cursor has made due: adds net changes, or reads at the
 * newest block that has the wallet's confirmation, once per address and asset however many wallets
 * and blocks ask for it. Says how many pairs were done; call it again until there are none.
 */
export async function settleBalances(tools: TrackerTools, signal: AbortSignal): Promise<number> {
  const { db, clock, chain_id, chain, lease } = tools
  const cursor = await findCursor(db, chain_id)
  if (!cursor) return 0
  const head = cursor.block_number
  const newest = { number: head, hash: cursor.block_hash }
  let done = 0
  if (chain.balances === 'delta')
    done += await db.transaction().execute(async (trx) => {
      await assertLease(trx, lease.name, lease.epoch)
      await awaitCursor(trx, chain_id)
      return await applyDeltas(trx, { chain_id, head, now: new Date(clock.now()) })
    })
  const due = distinctPairs(await listDueBalances(db, { chain_id, head, limit: rowsPerRound }))
  const { apart = [], usual = [] } = Object.groupBy(due, (pair) =>
    chain.isReadApart?.(pair) ? 'apart' : 'usual',
  )
  await deferBalanceChanges(db, apart.slice(mostApart), head)
  const placeOf = (pair: DueBalance) => (chain.balances === 'delta' ? head : blockFor(pair, head))
  // What fails or is slow is read when everything else is stored.
  const groups = [
    ...Map.groupBy(usual, placeOf),
    ...Map.groupBy(apart.slice(0, mostApart), placeOf),
  ]
  const errors: unknown[] = []
  for (const [number, pairs] of groups) {
    signal.throwIfAborted()
    let at: BlockRef | undefined
    try {
      at = number === head ? newest : await findRef(tools, number, signal)
      await readGroup(tools, { at, newest, pairs }, signal)
      done += pairs.length
    } catch (error) {
      if (!isRepeatable(error)) throw error
      errors.push(error)
      const isUnreadable =
        error instanceof BlockMissingError ||
        (error instanceof BlockGoneError && at && (await isOnChain(tools, at, signal)))
      // No node has it any more, or its state: the others go first.
      if (isUnreadable) await postponeBalanceChanges(db, pairs, head)
    }
  }
  try {
    done += await settleBacklog(tools, newest, signal)
  } catch (error) {
    if (!isRepeatable(error)) throw error
    errors.push(error)
  }
  // One block that cannot be read must not hold up the rest, and must not be kept quiet either.
  if (errors.length > 0) throw errors[0]
  return done
}

const isRepeatable = (error: unknown): boolean =>
  error instanceof BlockGoneError || error instanceof ChainUnavailableError

/** Whether a block is where it was; one that no node has any more did not leave the chain. */
async function isOnChain(
  { chain }: TrackerTools,
  { number, hash }: BlockRef,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return (await chain.header(number, signal))?.hash.equals(hash) === true
  } catch (error) {
    if (error instanceof BlockMissingError) return true
    throw error
  }
}

type Group = { at: BlockRef; newest: BlockRef; pairs: readonly DueBalance[] }

async function readGroup(
  tools: TrackerTools,
  { at, newest, pairs }: Group,
  signal: AbortSignal,
): Promise<void> {
  const { db, clock, chain_id, chain, lease } = tools
  const all = await readPairs(chain, pairs, at, signal)
  const now = new Date(clock.now())
  const reading_id = randomUUIDv7()
  await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    await awaitCursor(trx, chain_id)
    await holdRead(trx, tools, { at: [at], newest })
    // Work that is gone was taken back with its address or contract. Should they be there again, they
    // were away for some blocks, which this reading may not know.
    const open = new Set<string>()
    for (const [block_number, some] of Map.groupBy(
      all.filter(isReadable),
      (row) => row.as_of_block,
    ))
      for (const pair of await settleBalanceChanges(trx, some, block_number))
        open.add(keyOfWork(pair))
    const failing = all.filter((row) => !isReadable(row))
    for (const pair of await postponeBalanceChanges(trx, failing, newest.number))
      open.add(keyOfWork(pair))
    const rows = all.filter((row) => open.has(keyOfWork(row)))
    await storeReadings(trx, rows, { chain_id, now })
    if (chain.reorganizes) await rememberReadings(trx, rows, { chain_id, reading_id })
  })
}

const isReadable = ({ balance }: Reading): boolean => balance !== null
