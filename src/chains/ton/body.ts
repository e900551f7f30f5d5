import type { Cell, Slice } from '@ton/core'
import { readSnake } from './cells.ts'

// The first 32 bits of a body (op codes) that the chain itself knows.
const ops = {
  comment: 0,
  encrypted: 0x2167da4b,
  bounced: 0xffffffff,
  /** A bounce that brings the whole body back, since TVM 12. */
  richBounced: 0xfffffffe,
}

/** What a message says to people. */
export type Said = {
  message: string
  /** The bytes, where the message has one that cannot be shown. */
  message_hex?: string
  encrypted?: true
}

const silent: Said = { message: '' }

/** The comment of a body; that of the message which came back, in a bounce that brings it along. */
export function readComment(body: Cell): Said {
  try {
    return readSaid(body)
  } catch {
    // Who sends a message chooses its cells: a cell that only stands for another cannot be read, and
    // a comment is not a reason to miss a payment.
    return silent
  }
}

function readSaid(body: Cell): Said {
  const slice = body.beginParse()
  if (slice.remainingBits < 32) return silent
  const op = slice.loadUint(32)
  if (op === ops.comment) {
    const { text = '', hex } = readSnake(slice) ?? {}
    return { message: text, ...(hex !== undefined && { message_hex: hex }) }
  }
  if (op === ops.encrypted) return { message: '', encrypted: true }
  if (op === ops.richBounced && slice.remainingRefs > 0) return readSaid(slice.loadRef())
  return silent
}

/** The body that a bounced message brings back: 256 bits of it in the old form, all in the new. */
export function readReturned(body: Cell): Slice | undefined {
  const slice = body.beginParse()
  if (slice.remainingBits < 32) return undefined
  const op = slice.loadUint(32)
  if (op === ops.bounced) return slice
  if (op === ops.richBounced && slice.remainingRefs > 0) return slice.loadRef().beginParse()
  return undefined
}
