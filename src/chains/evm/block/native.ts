// Movements of the native coin by transaction. Each movement has a fixed place in its transaction, whether or not others are
// known, so that `transfer_id` stays the same when a trace arrives later.

import { quantityOf, type RawReceipt, type ReadTransaction } from '../codec/raw.ts'
import { type CoinLog, coinLogsOf, tokenLogsOfCoin } from './coin-logs.ts'
import { feeOf, isDeposit, mintOf } from './fees.ts'
import { type Callees, inTopic, type NamedAddresses } from './names.ts'
import { type TicketEffects, ticketEffects } from './retryables.ts'
import type { InternalTransfer } from './traces.ts'

/** A movement of the native coin at its place in the transaction, between numbers of addresses. */
export type NativeMovement = {
  place: number
  from: number
  to: number
  value: bigint
  failed: boolean
}

/** What a transaction does to the native coin. */
export type NativeEffects = {
  /** Pays the fee, and so has another balance even where nothing moves. */
  sender: number
  fee: bigint
  nonce: string | undefined
  failed: boolean
  movements: readonly NativeMovement[]
  /** What was called, where nothing was sent along: a number of the callees, or one of the two below. */
  callee: number
}

/** Every transaction has that many places, so that its movements do not depend on those before it. */
export const placesPerTransaction: number = 2 ** 32

/** Where no address is. */
export const noParty = -1
/** The callee of a transaction that has another record of its sender: it sent coin, or it failed. */
export const noCallee = -2
const none: readonly never[] = []
const mintPlace = 0
/** The place of the value that a transaction sends. */
export const valuePlace = 1
/** The first place of the logs. */
export const logPlace = 2
/** The first place of traced movements: far behind the logs, so that a trace changes no other place. */
export const internalPlace: number = 2 ** 31

/** The first place of what an Arbitrum ticket refunds; no log has that place. */
const refundPlace: number = internalPlace - 2

type Names = { addresses: NamedAddresses; callees: Callees }

/** Reads the native side of a transaction. */
export function nativeEffects(
  {
    transaction,
    receipt,
    internal,
    coinContract,
  }: {
    transaction: ReadTransaction
    receipt: RawReceipt
    internal: readonly InternalTransfer[]
    coinContract?: string | undefined
  },
  { addresses, callees }: Names,
): NativeEffects {
  const { status } = receipt
  const failed = status !== undefined && status !== null && quantityOf(status) === 0n
  const sender = addresses.add(transaction.from)
  const ticket = ticketEffects(transaction, receipt, failed)
  const logged = coinLogsOf(transaction, receipt)
  const value = ticket?.sent ? ticket.sent.value : quantityOf(transaction.value)
  const target = (value > 0n && ticket?.sent?.to) || (transaction.to ?? receipt.contractAddress)
  const sent: Sent = { sender, target, value, failed }
  const calls = ticket?.hasCalls === false ? none : internal
  let movements = logged
    ? loggedMovements(logged, sent, addresses)
    : sentMovements({ ...sent, transaction, ticket, calls }, addresses)
  // Coin that is sent through its contract is neither a value nor a call: only the logs show it.
  if (!logged && coinContract !== undefined) {
    const logs = tokenLogsOfCoin(receipt, coinContract)
    if (logs.length > 0) movements = [...movements, ...movementsOfLogs(logs, addresses)]
  }
  return {
    sender,
    fee: ticket ? ticket.fee : feeOf(transaction, receipt),
    nonce: isDeposit(transaction) ? receipt.depositNonce : transaction.nonce,
    failed,
    movements,
    callee: value > 0n || failed ? noCallee : target ? callees.add(target) : noParty,
  }
}

/** What the transaction itself sends, or would have sent. */
type Sent = { sender: number; target: string | null | undefined; value: bigint; failed: boolean }

const movementsOfLogs = (
  logs: readonly CoinLog[],
  addresses: NamedAddresses,
): readonly NativeMovement[] =>
  logs.map(({ offset, from, to, value }) => ({
    place: logPlace + offset,
    from: from === undefined ? noParty : addresses.add(from, inTopic),
    to: addresses.add(to, inTopic),
    value,
    failed: false,
  }))

function loggedMovements(
  logs: readonly CoinLog[],
  { sender, target, value, failed }: Sent,
  addresses: NamedAddresses,
): readonly NativeMovement[] {
  const movements = movementsOfLogs(logs, addresses)
  if (!failed) return movements
  const to = target ? addresses.add(target) : noParty
  return [{ place: valuePlace, from: sender, to, value, failed }, ...movements]
}

function sentMovements(
  {
    sender,
    target,
    value,
    failed,
    transaction,
    ticket,
    calls,
  }: Sent & {
    transaction: ReadTransaction
    ticket: TicketEffects | undefined
    calls: readonly InternalTransfer[]
  },
  addresses: NamedAddresses,
): readonly NativeMovement[] {
  const mint = ticket ? ticket.received.value : mintOf(transaction)
  const refunds = ticket ? ticket.refunds.filter(isMoving) : none
  if (value === 0n && mint === 0n && !failed && calls.length === 0 && refunds.length === 0)
    return none
  const to = target ? addresses.add(target) : noParty
  const movements: NativeMovement[] = []
  // It stays even where the deposit fails.
  if (mint > 0n) {
    const from = ticket?.received.from ? addresses.add(ticket.received.from) : noParty
    movements.push({ place: mintPlace, from, to: sender, value: mint, failed: false })
  }
  // A failed one is of interest to its sender whatever it would have moved.
  if (value > 0n || failed) movements.push({ place: valuePlace, from: sender, to, value, failed })
  for (const [index, refund] of refunds.entries())
    movements.push({
      place: refundPlace + index,
      from: refund.from ? addresses.add(refund.from) : noParty,
      to: addresses.add(refund.to),
      value: refund.value,
      failed: false,
    })
  for (const [index, moved] of (failed ? none : calls).entries())
    movements.push({
      place: internalPlace + index,
      from: addresses.add(moved.from),
      to: addresses.add(moved.to),
      value: moved.value,
      failed: false,
    })
  return movements
}

const isMoving = ({ from, to, value }: TicketEffects['refunds'][number]): boolean =>
  value > 0n && from !== to
