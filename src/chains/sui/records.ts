/** The net change of one address and coin type in a transaction. */
export type Change = { address: string; coinType: string; amount: bigint }

/** A transaction as far as money goes. */
export type Settled = {
  sender: string
  /** Who pays the gas. */
  payer: string
  /** What gas came to; negative where more storage was given back than used. */
  gas: bigint
  success: boolean
  changes: readonly Change[]
}

/** One directed movement; an empty end is a pool, a stake, a mint or a burn. */
export type SuiRecord = {
  coinType: string
  from: string
  to: string
  value: bigint
  /** The fee counts with this record of its payer. */
  pays_fee?: true
  /** Made by the gas alone: a fee without a payment, or storage that was given back. */
  gas?: 'fee' | 'rebate'
}

/** The native coin as nodes write it. */
export const suiType = `0x${'2'.padStart(64, '0')}::sui::SUI`

type Side = { address: string; left: bigint }

// Largest first, so that few records come out; equals by address, so that all come out the same.
const bySize = (a: Side, b: Side): number =>
  a.left === b.left ? (a.address < b.address ? -1 : 1) : a.left > b.left ? -1 : 1

/**
 * Makes directed records out of net changes, which say who has more and who has less but not from
 * whom. The gas bill is given back to its payer first; then, coin by coin, what some have less is
 * matched with what others have more, and the rest has an empty sender or receiver. A failed transaction
 * is one record of its sender. The fee counts with a record of its payer, who gets one without an
 * amount where there is no other. Where more storage is given back than gas is used, a record says
 * that too. So records and fee together are the changes again, exactly.
 */
export function recordsOf(settled: Settled): SuiRecord[] {
  const { sender, payer, gas, success } = settled
  const records = success
    ? paymentsOf(settled)
    : [{ coinType: suiType, from: sender, to: '', value: 0n }]
  if (gas < 0n) records.push({ coinType: suiType, from: '', to: payer, value: -gas, gas: 'rebate' })
  if (gas <= 0n) return records
  const paying = records.find(({ coinType, from }) => coinType === suiType && from === payer)
  if (paying) paying.pays_fee = true
  else
    records.push({
      coinType: suiType,
      from: payer,
      to: '',
      value: 0n,
      pays_fee: true,
      gas: 'fee',
    })
  return records
}

function paymentsOf({ payer, gas, changes }: Settled): SuiRecord[] {
  const coins = new Map<string, Map<string, bigint>>()
  const add = (coinType: string, address: string, amount: bigint) => {
    const sums = coins.get(coinType) ?? new Map<string, bigint>()
    coins.set(coinType, sums.set(address, (sums.get(address) ?? 0n) + amount))
  }
  for (const { address, coinType, amount } of changes) add(coinType, address, amount)
  add(suiType, payer, gas)
  const records: SuiRecord[] = []
  for (const [coinType, sums] of [...coins].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    records.push(...matchSides(coinType, sums))
  return records
}

function matchSides(coinType: string, sums: ReadonlyMap<string, bigint>): SuiRecord[] {
  const givers: Side[] = []
  const takers: Side[] = []
  for (const [address, sum] of sums)
    if (sum < 0n) givers.push({ address, left: -sum })
    else if (sum > 0n) takers.push({ address, left: sum })
  givers.sort(bySize)
  takers.sort(bySize)
  const records: SuiRecord[] = []
  let giving = 0
  let taking = 0
  while (giving < givers.length || taking < takers.length) {
    const giver = givers[giving]
    const taker = takers[taking]
    const smaller = giver && taker && taker.left < giver.left ? taker : (giver ?? taker)!
    const value = smaller.left
    records.push({ coinType, from: giver?.address ?? '', to: taker?.address ?? '', value })
    if (giver) {
      giver.left -= value
      if (giver.left === 0n) giving++
    }
    if (taker) {
      taker.left -= value
      if (taker.left === 0n) taking++
    }
  }
  return records
}
