import { formatUnits } from './format.ts'

/** The balance after a transfer, as ListBalanceHistory has it. */
export type BalancePoint = { transfer_time: string; change: string; balance: string }

/** The line of a chart, oldest first. */
export type BalanceLine = { times: number[]; values: number[]; texts: string[] }

/**
 * A line through the balances after each second, from points in the order of the service, newest first. It begins with
 * what was there before the oldest point.
 */
export function balanceLine(points: readonly BalancePoint[], decimals: number): BalanceLine {
  const line: BalanceLine = { times: [], values: [], texts: [] }
  const add = (time: number, balance: bigint) => {
    const text = formatUnits(balance, decimals)
    line.times.push(time)
    line.texts.push(text)
    line.values.push(Number(text.replaceAll(',', '')))
  }
  const oldest = points.at(-1)
  if (!oldest) return line
  add(secondOf(oldest) - 1, BigInt(oldest.balance) - BigInt(oldest.change))
  for (let at = points.length - 1; at >= 0; at--) {
    const point = points[at]!
    const next = points[at - 1]
    // Of several transfers in one second the last counts.
    if (next && secondOf(next) === secondOf(point)) continue
    add(secondOf(point), BigInt(point.balance))
  }
  return line
}

const secondOf = ({ transfer_time }: BalancePoint): number =>
  Math.floor(Date.parse(transfer_time) / 1000)
