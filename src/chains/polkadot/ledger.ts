import type { BalanceEvent } from './events.ts'

/** What an event does to balances. An end without an account is missing. */
export type Change = { from?: Buffer; to?: Buffer; value: bigint }

type Direction = 'in' | 'out' | 'move'

/**
 * The events that change `free + reserved` of an account, by what they do. Each is emitted once for
 * its change (substrate/frame/balances: impl_fungible.rs, impl_currency.rs, lib.rs). Events that only
 * move coin between free, reserved, held and frozen are not in the list. Neither is `BalanceSet`
 * (root only): it says the new balance and not the change.
 */
const coinEvents: Readonly<Record<string, Direction>> = {
  Transfer: 'move',
  ReserveRepatriated: 'move',
  TransferOnHold: 'move',
  TransferAndHold: 'move',
  Deposit: 'in',
  Minted: 'in',
  Restored: 'in',
  Withdraw: 'out',
  Burned: 'out',
  BurnedHeld: 'out',
  Slashed: 'out',
  Suspended: 'out',
  DustLost: 'out',
}

const directionOf = ({ pallet, name }: BalanceEvent): Direction | undefined =>
  pallet === 'Balances' ? coinEvents[name] : undefined

/** Whether an event is of a pallet that holds balances, or of the payment of fees. */
export const isLedgerPallet = (pallet: string): boolean => ledgerPallets.has(pallet)

const ledgerPallets: ReadonlySet<string> = new Set([
  'System',
  'Balances',
  'Assets',
  'ForeignAssets',
  'PoolAssets',
  'TransactionPayment',
  'AssetTxPayment',
  'AssetConversionTxPayment',
])

/** Whether an event is a transfer between two accounts that needs no explanation. */
export const isPlainTransfer = ({ pallet, name }: BalanceEvent): boolean =>
  pallet === 'Balances' && name === 'Transfer'

/** What an event does to balances; undefined where it does nothing. */
export function changeOf(event: BalanceEvent): Change | undefined {
  const direction = directionOf(event)
  if (!direction) return undefined
  const [first, second] = event.fields.flatMap(({ account }) => account ?? [])
  const value = event.fields.find(({ number }) => number !== undefined)?.number
  if (!first || value === undefined || (direction === 'move' && !second))
    throw new Error(`${event.pallet}.${event.name} without its fields`)
  if (direction === 'move') return { from: first, to: second!, value }
  return direction === 'in' ? { to: first, value } : { from: first, value }
}
