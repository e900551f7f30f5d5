import type { BalanceEvent, EventMark } from './balance-event.ts'
import { isLedgerPallet } from './ledger.ts'

/** What is known of a movement that is no plain transfer; stored as JSON. */
export type Explanation = {
  source: 'extrinsic' | 'system'
  /** The event that moved the coin, as `Balances.Minted`. */
  event: string
  /** The pallet that caused it: the next event that is of no ledger names it. */
  pallet: string
  xcm_message_id?: string
}

/**
 * Explains an event by those that follow it. A pallet first moves coin and then says why: `Staking.Rewarded`
 * follows the mint of a reward, and `MessageQueue.Processed` ends what a message from another chain did.
 */
export function explain(
  { index, extrinsic, pallet, name }: BalanceEvent,
  marks: readonly EventMark[],
): Explanation {
  const phase = marks[index]?.phase
  const next = marks.slice(index + 1).filter((mark) => mark.phase === phase)
  const message = next.find(({ message_id }) => message_id)?.message_id
  return {
    source: extrinsic === undefined ? 'system' : 'extrinsic',
    event: `${pallet}.${name}`,
    pallet: next.find((mark) => !isLedgerPallet(mark.pallet))?.pallet ?? pallet,
    ...(message && { xcm_message_id: `0x${message.toString('hex')}` }),
  }
}
