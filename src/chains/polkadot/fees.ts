import type { BalanceEvent } from './balance-event.ts'

/** What an extrinsic cost in the native coin, its payer, and the number of the event with both. */
export type Bill = { fee: bigint; payer?: Buffer | undefined; index: number }

const free: Bill = { fee: 0n, index: 0 }

/**
 * The bill of an extrinsic by its events. Runtimes since 2022 say it; those before withdraw the fee
 * as the first thing, and give back at the end what the call did not use.
 */
export function billOf(
  own: readonly BalanceEvent[],
  { isSigned = true }: { isSigned?: boolean } = {},
): Bill {
  const said = own.find(({ name }) => name === 'TransactionFeePaid')
  if (said) return { fee: numberIn(said, 'actual_fee'), payer: accountIn(said), index: said.index }
  // Paid in another asset, or by no account: what an inherent withdraws is no fee.
  if (!isSigned) return free
  if (own.some(({ name }) => name === 'AssetTxFeePaid')) return free
  const first = own.find(({ pallet, name }) => pallet === 'Balances' && name === 'Withdraw')
  const payer = first && accountIn(first)
  if (!first || !payer) return free
  return { fee: withdrawnIn(own, { first, payer }), payer, index: first.index }
}

/** How a fee was paid. */
export type Payment = {
  /** The fee, or less where less was withdrawn. */
  fee: bigint
  /** The events that the fee accounts for: the withdrawal, and what came back of it. */
  settled: readonly number[]
  /** What was withdrawn beyond the fee and did not come back, and by which event. */
  rest?: { index: number; value: bigint }
}

/** Finds the events by which a bill was paid. All others are movements of their own. */
export function paymentOf(own: readonly BalanceEvent[], { fee, payer }: Bill): Payment {
  const isOf = (event: BalanceEvent, name: string) =>
    event.pallet === 'Balances' && event.name === name && accountIn(event)?.equals(payer!) === true
  const first = payer && own.find((event) => isOf(event, 'Withdraw'))
  if (!first) return { fee, settled: [] }
  const excess = numberIn(first, 'amount') - fee
  if (excess <= 0n) return { fee: fee + excess, settled: [first.index] }
  const refund = own.findLast(
    (event) => isOf(event, 'Deposit') && numberIn(event, 'amount') === excess,
  )
  return refund
    ? { fee, settled: [first.index, refund.index] }
    : { fee, settled: [first.index], rest: { index: first.index, value: excess } }
}

const numberIn = ({ fields }: BalanceEvent, name: string): bigint =>
  fields.find((field) => field.name === name)?.number ??
  fields.find(({ number }) => number !== undefined)?.number ??
  0n

const accountIn = ({ fields }: BalanceEvent): Buffer | undefined =>
  fields.find(({ account }) => account)?.account

function withdrawnIn(
  events: readonly BalanceEvent[],
  { first, payer }: { first: BalanceEvent; payer: Buffer },
): bigint {
  const paid = numberIn(first, 'amount')
  // From the end: what others got of the fee, and before it what came back. Together it is all of it.
  let shared = 0n
  for (const event of events.toReversed()) {
    if (event.pallet !== 'Balances' || event.name !== 'Deposit') continue
    const amount = numberIn(event, 'amount')
    if (accountIn(event)?.equals(payer) && shared + amount === paid) return shared
    shared += amount
  }
  return paid
}
