import { stripVTControlCharacters, styleText } from 'node:util'
import type { Notification } from '../../../client/src/index.ts'
import { fitLines } from '../../lib/fit-lines.ts'

/** Something that happened on the local chains. */
export type DevEvent =
  | { kind: 'reorganized'; depth: number; time: number }
  | { kind: 'notified'; chain: string; notification: Notification; time: number }

// Time, chain and kind are before the text.
const indent = 25

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

/** The lines of an event for a terminal of so many columns. */
export function eventLines(event: DevEvent, columns = 80): string[] {
  const time = new Date(event.time).toTimeString().slice(0, 8)
  const lines = (chain: string, what: string, pieces: readonly string[], separator = '  ') =>
    fitLines(pieces, columns - indent, separator).map((text, at) =>
      at === 0
        ? `  ${styleText('dim', time)}  ${chain.toUpperCase()}  ${what}${' '.repeat(10 - stripVTControlCharacters(what).length)}${text}`
        : `${' '.repeat(indent)}${text}`,
    )
  if (event.kind === 'reorganized') {
    const blocks = event.depth === 1 ? '1 block' : `${event.depth} blocks`
    return lines('c', styleText('yellow', 'reorg'), [`${blocks} replaced`])
  }
  const { chain, notification } = event
  const { data, create_time } = notification
  const delay = `${Math.max(0, event.time - Date.parse(create_time))} ms`
  if ('operational_event' in data) {
    const { event: name, detail } = data.operational_event
    return lines(chain, 'event', [`${name} `, ...detail.split(' ')], ' ')
  }
  if (!('transfers' in data)) {
    const { transaction } = data
    return lines(chain, 'state', [transaction.transaction_state, styleText('dim', delay)])
  }
  return data.transfers.flatMap((transfer) => {
    const view = transfer as unknown as TransferFields
    const isReorged = view.transfer_state === 'TRANSFER_STATE_REORGED'
    // Short enough that a transfer of an ordinary amount is one line of 80 columns.
    const pieces = [
      `${amountOf(view, coins[chain])} → ${short(view.to)}`,
      short(view.transaction_hash ?? view.transaction_digest),
      `${data.confirmations} conf`,
      styleText('dim', delay),
    ]
    return lines(chain, isReorged ? styleText('yellow', 'reorged') : 'transfer', pieces)
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

const short = (text = '') => (text.length > 12 ? `${text.slice(0, 6)}…${text.slice(-4)}` : text)

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
