import { randomUUIDv7 } from 'node:crypto'
import type { BlockRef } from '../../chains/chain.ts'
import { rememberReadings, storeReadings } from '../../storage/balances/balances.ts'
import {
  type DueBalance,
  postponeBalanceChanges,
  settleBalanceChanges,
} from '../../storage/balances/changes.ts'
import { insertPending, type PendingReading } from '../../storage/balances/pending.ts'
import { awaitCursor } from '../../storage/tracking/blocks.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { holdRead, keyOfWork, readPairs } from './read-pairs.ts'

/** Pairs that are read at one block; `isKept` when that is not confirmed yet. */
export type Group = {
  at: BlockRef
  newest: BlockRef
  pairs: readonly DueBalance[]
  isKept: boolean
}

type Read = PendingReading & { isKept: boolean }

/** Reads the balances of a group and stores them, or keeps them until their block is confirmed. */
export async function readGroup(
  tools: TrackerTools,
  group: Group,
  signal: AbortSignal,
): Promise<void> {
  const { db, clock, network_id, chain, lease } = tools
  const { at, newest, pairs } = group
  const isDelta = chain.balances === 'delta'
  // Nodes are called here, before the transaction: no lock is held while a node may be slow.
  const all = (await readPairs(chain, pairs, at, signal)).map((reading, index): Read => {
    const { confirmation, block_number } = pairs[index]!
    const { as_of_block } = reading
    // Net changes of later blocks are known, and can be taken off again; those of a gap are not (`applyPending`).
    const since_block = isDelta ? block_number : as_of_block
    return {
      ...reading,
      since_block,
      // On chains that follow by net changes the nodes answer for the present only.
      isKept: group.isKept || (isDelta && confirmation > 1),
    }
  })
  const now = new Date(clock.now())
  await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    await awaitCursor(trx, network_id)
    await holdRead(trx, tools, { at: [at], newest })
    // Work that is gone was taken back with its address or contract. Should they be there again, they
    // were unreachable for some blocks, which this reading may not know.
    const open = new Map<string, number | null>()
    // One statement per block and kind instead of one per pair.
    for (const some of Map.groupBy(
      all.filter(({ balance }) => balance !== null),
      ({ as_of_block, isKept }) => `${as_of_block}/${isKept}`,
    ).values()) {
      const { as_of_block: block_number, isKept } = some[0]!
      for (const pair of await settleBalanceChanges(trx, some, {
        ...{ block_number, isKept, head: newest.number },
      }))
        open.set(keyOfWork(pair), pair.last_delta)
    }
    // A contract that fails keeps its work with a growing pause (`postponeBalanceChanges`).
    const failing = all.filter(({ balance }) => balance === null)
    for (const pair of await postponeBalanceChanges(trx, failing, newest.number))
      open.set(keyOfWork(pair), null)
    // A value that was not read is no baseline: net changes would be added to it.
    const rows = all.filter((row) => open.has(keyOfWork(row)) && !(isDelta && row.balance === null))
    const { kept = [], stored = [] } = Object.groupBy(rows, (row) =>
      row.isKept && row.balance !== null ? 'kept' : 'stored',
    )
    // A net change that was taken away is not known any more, also one beyond the page of work that named the pair.
    const pending = kept.map((row) => {
      const since_block = Math.max(row.since_block, open.get(keyOfWork(row)) ?? 0)
      return { ...row, since_block }
    })
    await insertPending(trx, pending, network_id)
    await storeReadings(trx, stored, { network_id, now })
    if (chain.reorganizes)
      await rememberReadings(trx, stored, { network_id, reading_id: randomUUIDv7() })
  })
}
