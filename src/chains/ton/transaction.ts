import type { Cell } from '@ton/core'
import { messageCellsOf, normalizedHash, readCell } from './cells.ts'
import { loadMessage, type TonMessage } from './message.ts'
import { loadCurrencies, readOutcome } from './phases.ts'
import type { RawTransaction } from './raw.ts'

/** A message with the hash of its cell, by which both ends know it. */
export type HashedMessage = {
  hash: Buffer
  /** Missing for a message to the outside that cannot be read: it moves nothing. */
  message: TonMessage | undefined
}

/** A transaction of one account. */
export type TonTransaction = {
  hash: Buffer
  /** Logical time. */
  lt: bigint
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

const hashed = (cell: Cell): HashedMessage => ({ hash: cell.hash(), message: readMessage(cell) })

const toOutside = 0b11

function readMessage(cell: Cell): TonMessage | undefined {
  try {
    return loadMessage(cell)
  } catch (error) {
    if (cell.beginParse().loadUint(2) === toOutside) return undefined
    throw error
  }
}

/** The cells of a transaction; undefined when they are not those of its hash. */
export function proveTransaction({ data, transaction_id }: RawTransaction): Cell | undefined {
  const cell = readCell(data)
  return cell?.hash().toString('base64') === transaction_id.hash ? cell : undefined
}

const transactionTag = 0b0111

/** Decodes the cells of a transaction. Throws where they cannot be read, or are of another account. */
export function decodeTransaction(cell: Cell, account: Buffer): TonTransaction {
  const slice = cell.beginParse()
  if (slice.loadUint(4) !== transactionTag) throw new Error('is not a transaction')
  if (!slice.loadBuffer(32).equals(account.subarray(1))) throw new Error('is of another account')
  const lt = slice.loadUintBig(64)
  // Hash and logical time of the one before.
  slice.skip(256 + 64)
  const time = slice.loadUint(32) * 1_000
  // Number of messages, states of the account before and after.
  slice.skip(15 + 2 + 2)
  slice.loadRef()
  let fee = loadCurrencies(slice)
  slice.loadRef()
  const outcome = readOutcome(slice.loadRef().beginParse())
  const messages = messageCellsOf(cell)
  const received = messages.in && hashed(messages.in)
  const out = messages.out.map(hashed)
  // Not the field after it: what was a fee for instant routing holds flags now.
  for (const { message } of out)
    if (message?.info.type === 'internal') fee += message.info.forwardFee
  return {
    hash: cell.hash(),
    lt,
    time,
    fee,
    in: received,
    out,
    ...outcome,
    external_hash: received?.message && normalizedHash(received.message),
  }
}
