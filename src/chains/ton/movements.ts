import type { AssetKey } from '../../contract/records/assets.ts'
import type { Movement, TokenAccount } from '../chain.ts'
import { readComment, type Said } from './body.ts'
import { bytesOf } from './cells.ts'
import { ordinalsPerTransaction } from './family.ts'
import { readJettonOrder, readReturnedTokens } from './jetton-body.ts'
import type { RawBlockId } from './raw.ts'
import type { HashedMessage, TonTransaction } from './transaction.ts'

/** Where a transaction stands: its first ordinal, and the block that holds it. */
export type Place = { ordinal: number; block: RawBlockId; mc_seq_no: number }

const tokenOrdinals = ordinalsPerTransaction / 2
const feeOrdinal = tokenOrdinals - 1

const noParty = Buffer.alloc(0)

/** A shard as 16 hex digits, as explorers write it. */
const shardText = (shard: string): string =>
  BigInt.asUintN(64, BigInt(shard)).toString(16).padStart(16, '0')

const common = (transaction: TonTransaction, { block, mc_seq_no }: Place) => ({
  transaction_hash: transaction.hash,
  transaction_fee: transaction.fee,
  time: transaction.time,
  ...(transaction.external_hash && { external_hash: transaction.external_hash }),
  detail: {
    seq_no: String(block.seqno),
    workchain: String(block.workchain),
    shard: shardText(block.shard),
    mc_seq_no: String(mc_seq_no),
    status: 'success',
    bounced: 'false',
    message: '',
    pays_fee: false,
  },
})

/**
 * The movements of the native coin: one per internal message, seen from the account. The fee counts
 * with the first one. An account that paid without any (a message from outside that did nothing) has a
 * record without an amount.
 */
export function nativeMovements(
  transaction: TonTransaction,
  place: Place,
  { asset, account }: { asset: AssetKey; account: Buffer },
): Movement[] {
  const base = common(transaction, place)
  const movements = messagesOf(transaction, place, asset)
  if (movements.length === 0 && transaction.fee > 0n)
    movements.push({
      ...base,
      ordinal: place.ordinal + feeOrdinal,
      asset,
      from: account,
      to: noParty,
      value: 0n,
      only: 'from',
      detail: { ...base.detail, status: transaction.isDone ? 'success' : 'failed' },
    })
  if (movements[0]) movements[0].detail = { ...movements[0].detail, pays_fee: true }
  return movements
}

function messagesOf(transaction: TonTransaction, place: Place, asset: AssetKey): Movement[] {
  const base = common(transaction, place)
  const movement = (
    { hash, message }: HashedMessage,
    index: number,
    only: 'from' | 'to',
  ): Movement[] => {
    if (message?.info.type !== 'internal') return []
    const { info, body } = message
    const said = readComment(body)
    const detail = {
      ...base.detail,
      status: only === 'to' && transaction.isReturned ? 'failed' : 'success',
      bounced: String(info.bounced),
      ...commentOf(said),
    }
    return [
      {
        ...base,
        ordinal: place.ordinal + index,
        asset,
        from: bytesOf(info.src),
        to: bytesOf(info.dest),
        value: info.value.coins,
        only,
        transfer_hash: hash,
        detail,
      },
    ]
  }
  return [
    ...(transaction.in ? movement(transaction.in, 0, 'to') : []),
    ...transaction.out.flatMap((message, index) => movement(message, 1 + index, 'from')),
  ]
}

/**
 * The movement of tokens that a transaction of a jetton wallet makes. `undefined` where the message
 * is of a kind that TEP-74 does not name; the balance is read again in any case.
 */
export function tokenMovements(
  transaction: TonTransaction,
  place: Place,
  { owner, asset }: TokenAccount,
  index: number,
): Movement[] | undefined {
  const received = transaction.in?.message
  if (!transaction.in || received?.info.type !== 'internal') return []
  const base = {
    ...common(transaction, place),
    asset,
    ordinal: place.ordinal + tokenOrdinals + index,
  }
  const { hash } = transaction.in
  // What did not run to the end moved nothing, a bounce neither.
  if (!transaction.isDone) return []
  if (received.info.bounced) {
    const value = readReturnedTokens(received.body)
    if (value === undefined) return undefined
    const detail = { ...base.detail, bounced: 'true' }
    return [{ ...base, from: noParty, to: owner, value, only: 'to', transfer_hash: hash, detail }]
  }
  const order = readJettonOrder(received.body)
  // An unknown message may move tokens: it is counted, and the balance is read.
  if (!order) return isPlain(received.body) ? [] : undefined
  const value = order.amount
  if (order.kind === 'internal_transfer') {
    const detail = { ...base.detail, ...commentOf(order.said) }
    return [
      { ...base, from: order.from, to: owner, value, only: 'to', transfer_hash: hash, detail },
    ]
  }
  if (order.kind === 'burn')
    return [{ ...base, from: owner, to: noParty, value, only: 'from', transfer_hash: hash }]
  // Named by the message that carries the tokens on: a bounce and the other end name it too.
  const carrier = transaction.out.find(
    ({ message }) => message && readJettonOrder(message.body)?.kind === 'internal_transfer',
  )
  const detail = { ...base.detail, ...commentOf(order.said) }
  const transfer_hash = carrier?.hash ?? hash
  return [{ ...base, from: owner, to: order.to, value, only: 'from', transfer_hash, detail }]
}

/** What a record has of a message's text. */
const commentOf = ({ message, message_hex, encrypted }: Said) => ({
  message,
  ...(message_hex !== undefined && { message_hex }),
  ...(encrypted && { message_encrypted: 'true' }),
})

/** Coins alone, or a word: nothing that moves tokens. */
const isPlain = (body: { bits: { length: number } }): boolean => body.bits.length < 32
