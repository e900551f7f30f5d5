import type { Outcome } from '../helpers/wallets.ts'

const signs: Readonly<Record<string, bigint>> = {
  TRANSFER_DIRECTION_INCOMING: 1n,
  TRANSFER_DIRECTION_OUTGOING: -1n,
  TRANSFER_DIRECTION_INTERNAL: 0n,
}

/**
 * What records do to the native balance of what they are seen from, by the rule of docs/webhooks.md:
 * values by their direction, without those of failed transactions in C, and less every `fee_paid`.
 */
export const nativeSumOf = (records: readonly Outcome[]): bigint => {
  let sum = 0n
  for (const { asset_type, token_address, direction, value, fee_paid, transfer_state } of records) {
    sum -= BigInt(fee_paid)
    const isNative = !asset_type.includes('_ERC') && !token_address
    if (isNative && transfer_state !== 'TRANSFER_STATE_FAILED')
      sum += signs[direction]! * BigInt(value)
  }
  return sum
}
