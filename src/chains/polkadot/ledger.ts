import type { BalanceEvent } from './balance-event.ts'
import { isTokenPallet, type Token } from './token.ts'

/** What an event does to balances. An end without an account is missing. */
export type Change = {
  from?: Buffer
  to?: Buffer
  value: bigint
  /** Missing for the native coin. */
  token?: Token
}

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

/** The same of tokens (substrate/frame/assets: functions.rs, impl_fungibles.rs); `Transferred` is emitted by approved transfers too. */
const tokenEvents: Readonly<Record<string, Direction>> = {
  Transferred: 'move',
  Issued: 'in',
  Deposited: 'in',
  Burned: 'out',
  Withdrawn: 'out',
}

/** Whether an event changes balances of a token. */
export const isTokenChange = (pallet: string, name: string): boolean =>
  isTokenPallet(pallet) && Object.hasOwn(tokenEvents, name)

const directionOf = ({ pallet, name }: BalanceEvent): Direction | undefined =>
  pallet === 'Balances' ? coinEvents[name] : isTokenPallet(pallet) ? tokenEvents[name] : undefined

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
  (pallet === 'Balances' && name === 'Transfer') ||
  (isTokenPallet(pallet) && name === 'Transferred')

/** What an event does to balances; undefined where it does nothing. */
export function changeOf(event: BalanceEvent): Change | undefined {
  const direction = directionOf(event)
  if (!direction) return undefined
  const [first, second] = event.fields.flatMap(({ account }) => account ?? [])
  const value = event.fields.find(({ number }) => number !== undefined)?.number
  if (!first || value === undefined || (direction === 'move' && !second))
    throw new Error(`${event.pallet}.${event.name} without its fields`)
  const { pallet } = event
  const id = event.fields.find(({ token_id }) => token_id)?.token_id
  if (isTokenPallet(pallet) && !id) throw new Error(`${pallet}.${event.name} without its asset`)
  const moved = { value, ...(isTokenPallet(pallet) && { token: { pallet, id: id! } }) }
  if (direction === 'move') return { ...moved, from: first, to: second! }
  return direction === 'in' ? { ...moved, to: first } : { ...moved, from: first }
}
