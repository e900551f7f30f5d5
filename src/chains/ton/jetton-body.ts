import { Address, type Cell, type Slice } from '@ton/core'
import { readComment, readReturned, type Said } from './body.ts'
import { bytesOf } from './cells.ts'

const ops = { transfer: 0x0f8a7ea5, internalTransfer: 0x178d4519, burn: 0x595f07bc }
/** Messages of a jetton wallet that have taken tokens from it: when one bounces, they come back. */
const carriers: readonly number[] = [ops.internalTransfer, 0x7bdd97de /* burn_notification */]

/** What a message to a jetton wallet asks for (TEP-74). */
export type JettonOrder =
  /** The owner sends tokens. */
  | { kind: 'transfer'; amount: bigint; to: Buffer; said: Said }
  /** Tokens arrive. */
  | { kind: 'internal_transfer'; amount: bigint; from: Buffer; said: Said }
  | { kind: 'burn'; amount: bigint }

const noParty = Buffer.alloc(0)

const readAddress = (slice: Slice): Buffer => {
  const address = slice.loadAddressAny()
  return address instanceof Address ? bytesOf(address) : noParty
}

/** The comment that goes along with tokens, which stands in place or in a cell of its own. */
const readPayload = (slice: Slice): Said => {
  if (slice.remainingBits === 0) return { message: '' }
  const payload: Cell = slice.loadBit() ? slice.loadRef() : slice.asCell()
  return readComment(payload)
}

/** Reads the body of a message to a jetton wallet; undefined when it is of another kind. */
export function readJettonOrder(body: Cell): JettonOrder | undefined {
  try {
    const slice = body.beginParse()
    const op = slice.loadUint(32)
    if (!Object.values(ops).includes(op)) return undefined
    // The query id, which nothing here needs.
    slice.skip(64)
    const amount = slice.loadCoins()
    if (op === ops.burn) return { kind: 'burn', amount }
    const other = readAddress(slice)
    // The address that gets the rest of the coins.
    slice.loadAddressAny()
    if (op === ops.transfer) slice.loadMaybeRef()
    slice.loadCoins()
    const said = readPayload(slice)
    return op === ops.transfer
      ? { kind: 'transfer', amount, to: other, said }
      : { kind: 'internal_transfer', amount, from: other, said }
  } catch {
    return undefined
  }
}

/** How many tokens a bounced message brings back. */
export function readReturnedTokens(body: Cell): bigint | undefined {
  try {
    const slice = readReturned(body)
    if (!slice || !carriers.includes(slice.loadUint(32))) return undefined
    slice.skip(64)
    return slice.loadCoins()
  } catch {
    return undefined
  }
}
