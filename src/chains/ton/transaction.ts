import { type Cell, loadMessage, loadTransaction, type Message } from '@ton/core'
import { messageCellsOf, normalizedHash, readCell } from './cells.ts'
import type { RawTransaction } from './raw.ts'

/** A message with the hash of its cell, by which both ends know it. */
export type HashedMessage = { hash: Buffer; message: Message }

/** A transaction of one account. */
export type TonTransaction = {
  hash: Buffer
  /** Milliseconds. */
  time: number
  /** All that the account paid: what it has afterwards is before + in - out - this. */
  fee: bigint
  in: HashedMessage | undefined
  out: readonly HashedMessage[]
  /** The value went back to where it came from. */
  isReturned: boolean
  /** Its contract ran to the end and all its actions were done. */
  isDone: boolean
  external_hash: Buffer | undefined
}

const hashed = (cell: Cell): HashedMessage => ({
  hash: cell.hash(),
  message: loadMessage(cell.beginParse()),
})

/** Decodes a transaction and proves that it is the one of its hash; undefined when it is not. */
export function decodeTransaction(
  raw: RawTransaction,
  account: Buffer,
): TonTransaction | undefined {
  const cell = readCell(raw.data)
  if (cell?.hash().toString('base64') !== raw.transaction_id.hash) return undefined
  const transaction = loadTransaction(cell.beginParse())
  const address = transaction.address.toString(16).padStart(64, '0')
  if (address !== account.toString('hex', 1)) return undefined
  const messages = messageCellsOf(cell)
  const received = messages.in && hashed(messages.in)
  const out = messages.out.map(hashed)
  let fee = transaction.totalFees.coins
  // Not the field after it: what was a fee for instant routing holds flags now.
  for (const { message } of out)
    if (message.info.type === 'internal') fee += message.info.forwardFee
  const { description } = transaction
  const isGeneric = description.type === 'generic'
  return {
    hash: cell.hash(),
    time: transaction.now * 1_000,
    fee,
    in: received,
    out,
    isReturned: isGeneric && description.bouncePhase?.type === 'ok',
    isDone: isGeneric && !description.aborted && (description.actionPhase?.success ?? true),
    external_hash: received && normalizedHash(received.message),
  }
}
