// Helpers on cells. Senders choose the cells of a message: a comment is read up to `longestComment` bytes, and what is no
// text is no comment. Other cells that cannot be read throw, and `block.ts` notes the transaction as undecoded.

import { type Address, beginCell, Cell, Dictionary, type Slice } from '@ton/core'
import type { TonMessage } from './message.ts'

/** The messages of a transaction as the cells that they are: written again they may hash otherwise. */
export function messageCellsOf(transaction: Cell): { in: Cell | undefined; out: Cell[] } {
  const slice = transaction.refs[0]!.beginParse()
  return {
    in: slice.loadMaybeRef() ?? undefined,
    out: slice.loadDict(Dictionary.Keys.Uint(15), Dictionary.Values.Cell()).values(),
  }
}

/** The stored form of an address: the workchain as one signed byte, then the account. */
export const bytesOf = (address: Address): Buffer =>
  Buffer.concat([Buffer.from([address.workChain & 0xff]), address.hash])

/**
 * The hash by which wallets know an external message before it is in a block (TEP-467): without its
 * state, its sender and its fee, and with its body in a cell of its own.
 */
export function normalizedHash({ info, body }: TonMessage): Buffer | undefined {
  if (info.type !== 'external-in') return undefined
  return beginCell()
    .storeUint(0b10, 2)
    .storeUint(0, 2)
    .storeAddress(info.dest)
    .storeCoins(0)
    .storeBit(false)
    .storeBit(true)
    .storeRef(body)
    .endCell()
    .hash()
}

// Bytes of a comment that are kept. A longer one is cut, not refused: the payment counts.
const longestComment = 4_096

/** A text, and its bytes in hex where it cannot be shown as it is. */
export type Snake = { text: string; hex?: string }

/** A text that goes through a chain of cells; undefined when it is none. */
export function readSnake(first: Slice): Snake | undefined {
  const parts: Buffer[] = []
  let length = 0
  let slice = first
  for (;;) {
    if (slice.remainingBits % 8 !== 0) return undefined
    const part = slice.loadBuffer(slice.remainingBits / 8)
    parts.push(part)
    length += part.length
    // Checked after each cell, so that an endless chain of cells costs no more than the bound.
    if (slice.remainingRefs === 0 || length > longestComment) break
    slice = slice.loadRef().beginParse()
  }
  const bytes = Buffer.concat(parts)
  const text = readUtf8(bytes, { isCut: slice.remainingRefs > 0 })
  if (text === undefined) return undefined
  if (!text.includes('\u0000')) return { text: cut(text) }
  // PostgreSQL has no text with a zero in it. Left out, "1<NUL>2" would be the reference "12" of another
  // payment: a sign that no reference has stands in its place, and the bytes are given beside it.
  return {
    text: cut(text.replaceAll('\u0000', '\ufffd')),
    hex: bytes.subarray(0, longestComment).toString('hex'),
  }
}

/** Where the bytes are cut off, the sign that they end in the middle of is left out. */
function readUtf8(bytes: Buffer, { isCut }: { isCut: boolean }): string | undefined {
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    return decoder.decode(bytes, { stream: isCut })
  } catch {
    return undefined
  }
}

/** Never between the halves of a sign: one half is not text, and PostgreSQL would refuse the block. */
const cut = (text: string): string => {
  const end = text.slice(0, longestComment)
  return end.isWellFormed() ? end : end.slice(0, -1)
}

/** Reads cells; undefined when the bytes are not those of one. */
export function readCell(boc: string): Cell | undefined {
  try {
    return Cell.fromBase64(boc)
  } catch {
    return undefined
  }
}
