import { styleText } from 'node:util'
import type { Notification } from '../../../client/src/index.ts'

/** Something that happened on the local chains. */
export type DevEvent =
  | { kind: 'reorganized'; depth: number; time: number }
  | { kind: 'notified'; chain: string; notification: Notification; time: number }

type Coin = { symbol: string; decimals: number }

// Chain q is missing: it has no notifications.
const coins: Readonly<Record<string, Coin>> = {
  c: { symbol: 'ETH', decimals: 18 },
  t: { symbol: 'TON', decimals: 9 },
  s: { symbol: 'SUI', decimals: 9 },
  p: { symbol: 'DOT', decimals: 10 },
}

/** An event for a log that programs read. */
export const eventFields = (event: DevEvent): object =>
  event.kind === 'reorganized'
    ? { chain: 'c', depth: event.depth }
    : { chain: event.chain, webhook_history_id: event.notification.webhook_history_id }

/** The lines of an event for a terminal. */
export function eventLines(event: DevEvent): string[] {
  const time = new Date(event.time).toTimeString().slice(0, 8)
  const line = (chain: string, what: string, text: string) =>
    `  ${styleText('dim', time)}  ${chain.toUpperCase()}  ${what.padEnd(10)}  ${text}`
  if (event.kind === 'reorganized') {
    const blocks = event.depth === 1 ? '1 block' : `${event.depth} blocks`
    return [line('c', styleText('yellow', 'reorganize'), `${blocks} replaced`)]
  }
  const { chain, notification } = event
  const { data, create_time } = notification
  const delay = `webhook in ${Math.max(0, event.time - Date.parse(create_time))} ms`
  if ('operational_event' in data) {
    const { event: name, detail } = data.operational_event
    return [line(chain, 'event', `${name}  ${detail}`)]
  }
  if (!('transfers' in data)) {
    const { transaction } = data
    return [line(chain, 'state', `${transaction.transaction_state}  ${delay}`)]
  }
  return data.transfers.map((transfer) => {
    const view = transfer as unknown as TransferFields
    const isReorged = view.transfer_state === 'TRANSFER_STATE_REORGED'
    const text = [
      amountOf(view, coins[chain]),
      `to ${short(view.to)}`,
      `in ${short(view.transaction_hash ?? view.transaction_digest)}`,
      data.confirmations === 1 ? '1 confirmation' : `${data.confirmations} confirmations`,
      styleText('dim', delay),
    ].join('  ')
    return line(chain, isReorged ? styleText('yellow', 'reorged') : 'transfer', text)
  })
}

/** The fields that the variants have under the same name, or not at all. */
type TransferFields = {
  transaction_hash?: string
  transaction_digest?: string
  transfer_state?: string
  asset_type: string
  value: string
  to: string
  token_id?: string
  transfer_metadata?: { erc20?: { symbol?: string; decimals?: number } } | null
}

const short = (text = '') => (text.length > 14 ? `${text.slice(0, 8)}…${text.slice(-4)}` : text)

/** In whole coins where the decimals are known; the smallest unit says little there. */
function amountOf(transfer: TransferFields, coin?: Coin): string {
  const { asset_type, value, token_id } = transfer
  const isNative = /^ASSET_TYPE_[CTSP]$/.test(asset_type)
  const unit = isNative ? coin : tokenUnit(transfer)
  if (unit) return decimalText(value, unit)
  const kind = asset_type.replace(/^ASSET_TYPE_/, '')
  return kind.includes('721') ? `${kind} #${token_id ?? value}` : `${kind} ${value}`
}

/** Symbol and decimals of a token, where its contract says both. */
export function tokenUnit({
  transfer_metadata,
}: Pick<TransferFields, 'transfer_metadata'>): Coin | undefined {
  const { symbol, decimals } = transfer_metadata?.erc20 ?? {}
  return symbol && decimals !== undefined ? { symbol, decimals } : undefined
}

/** An amount in whole units with the symbol, such as `1.3 USDC`. */
export function decimalText(value: string, { decimals, symbol }: Coin): string {
  const digits = value.padStart(decimals + 1, '0')
  const whole = decimals === 0 ? digits : digits.slice(0, -decimals)
  const part = decimals === 0 ? '' : digits.slice(-decimals).replace(/0+$/, '')
  return `${whole}${part ? `.${part}` : ''} ${symbol}`
}
