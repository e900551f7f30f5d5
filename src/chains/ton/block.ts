// A masterchain block with the transactions of all shard blocks that it commits. A transaction is identified by the hash of its
// cells, which proves it; what a server says beside the cells is used for looking up only.

import type { AssetKey } from '../../contract/records/assets.ts'
import type {
  BlockContent,
  BlockHeader,
  ChainBlock,
  Movement,
  MovementUpdate,
  Touch,
  Tracked,
  Undecoded,
} from '../chain.ts'
import { ChainUnavailableError } from '../chain.ts'
import type { VerificationCounts } from '../verification.ts'
import type { Doubts } from './doubts.ts'
import { ordinalsPerTransaction } from './family.ts'
import { nativeMovements, tokenMovements } from './movements.ts'
import { type RawBlockId, type RawTransaction, readAccount, readHash } from './raw.ts'
import { decodeTransaction, proveTransaction, type TonTransaction } from './transaction.ts'

/** The transactions of one block of the masterchain or of a shard. */
export type BlockPart = {
  id: RawBlockId
  transactions: readonly RawTransaction[]
  /** Says that the node which gave them has lied. */
  accuse(): void
}

type Item = {
  raw: RawTransaction
  part: BlockPart
  account: Buffer
  key: string
  lt: bigint
  /** Who sent the message, where it may have gone back to them. */
  returnedTo: Buffer | undefined
}

// A record has the time of its transaction, which is that of its shard block.
const mostApartMs = 86_400_000

/** A masterchain block with everything that it commits. */
export function createBlock({
  header,
  parts,
  tops,
  native,
  doubts,
  counts,
}: {
  header: BlockHeader
  parts: readonly BlockPart[]
  tops: readonly RawBlockId[]
  native: AssetKey
  doubts: Doubts
  counts: VerificationCounts
}): ChainBlock {
  // Some servers leave the account out. Its cells may still prove it (`accountOf`).
  const nameless: string[] = []
  const items = parts
    .flatMap((part) =>
      part.transactions.flatMap((raw) => {
        const item = toItem(raw, part)
        if (item) return [item]
        // The node is accused at once, and the block is asked of another one while that may help.
        part.accuse()
        nameless.push(raw.transaction_id.hash)
        return []
      }),
    )
    // The same order from any source; effects come after their causes.
    .sort((a, b) =>
      a.lt < b.lt ? -1 : a.lt > b.lt ? 1 : a.key < b.key ? -1 : a.key > b.key ? 1 : 0,
    )
  if (nameless.filter((hash) => doubts.mayHelp(hash)).length > 0)
    throw new ChainUnavailableError(
      `block ${header.number}: a node gave a transaction without an account`,
    )
  const decoded = new Map<Item, TonTransaction>()
  /** Throws where the transaction cannot be decoded. */
  const decodeItem = (item: Item): TonTransaction => {
    const known = decoded.get(item)
    if (known) return known
    const cell = proveTransaction(item.raw)
    if (!cell) throw new FalseTransactionError('its cells are not those of its hash')
    const transaction = decodeTransaction(cell, item.account)
    // The order of records depends on it, so that it must be that of the proved cells.
    if (transaction.lt !== item.lt)
      throw new FalseTransactionError('its logical time is not that of its cells')
    if (Math.abs(transaction.time - header.time) > mostApartMs)
      throw new Error('its time is not that of its block')
    // A true transaction of an earlier block would be stored twice.
    if (doubts.isReplayed(item.key, item.lt, header.number))
      throw new FalseTransactionError('an earlier block had it already')
    decoded.set(item, transaction)
    counts.check('transaction')
    return transaction
  }

  return {
    ...header,
    contracts: [],
    // Every account of the block, because T has no index of contracts that could narrow it.
    accounts: function* () {
      for (const { account, returnedTo } of items) {
        yield account
        if (returnedTo) yield returnedTo
      }
    },
    decode: (tracked): BlockContent => {
      const movements: Movement[] = []
      const touched: Touch[] = []
      const updates: MovementUpdate[] = []
      const undecoded: Undecoded[] = []
      let unknown = 0
      let mayHelp = false
      for (const [index, item] of items.entries()) {
        const { account, part } = item
        const found = concernOf(item, tracked)
        if (!found) continue
        const { isTracked, tokens, mayReturn } = found
        // Whatever the transaction did, the balances are read again.
        // Before decoding, so that an undecodable transaction leaves no wrong balance behind.
        if (isTracked) touched.push({ address: account, asset: native })
        for (const { owner, asset } of tokens) touched.push({ address: owner, asset })
        // Room for all messages of a transaction, so that ordinals do not depend on what is
        // tracked.
        const ordinal = index * ordinalsPerTransaction
        const place = { ordinal, block: part.id, mc_seq_no: header.number }
        try {
          const transaction = decodeItem(item)
          const own = isTracked
            ? nativeMovements(transaction, place, { asset: native, account })
            : []
          const moved = tokens.map((token, number) =>
            tokenMovements(transaction, place, token, number),
          )
          movements.push(...own, ...moved.flatMap((some) => some ?? []))
          unknown += moved.filter((some) => some === undefined).length
          if (mayReturn && transaction.isReturned && transaction.in)
            updates.push({
              transfer_hash: transaction.in.hash,
              detail: { status: 'failed', bounced: 'true' },
            })
        } catch (error) {
          const { hash } = item.raw.transaction_id
          if (error instanceof FalseTransactionError) {
            part.accuse()
            counts.refuse('transaction')
            mayHelp = doubts.mayHelp(hash) || mayHelp
          }
          // Bounded: the text goes into the gap of the block.
          const reason = error instanceof Error ? error.message.slice(0, 100) : 'cannot be read'
          undecoded.push({ hash: readHash(hash), reason })
        }
      }
      if (mayHelp)
        throw new ChainUnavailableError(
          `block ${header.number}: a node gave a transaction that cannot be true: ${undecoded[0]!.reason}`,
        )
      return {
        movements,
        touched,
        updates,
        ...(unknown > 0 && { unknown_kinds: { jetton_message: unknown } }),
        ...(undecoded.length > 0 && { undecoded }),
      }
    },
    detail: { tops },
    ...(nameless.length > 0 && {
      lacks: `the accounts of ${nameless.length} transactions: ${nameless.slice(0, 5).join(', ')}`,
    }),
  }
}

/** A transaction that a node made up: not the one of its hash, or of another block. */
class FalseTransactionError extends Error {
  override name = 'FalseTransactionError'
}

/** Why a transaction has to be decoded; undefined where it concerns no tracked account. */
function concernOf({ account, returnedTo }: Item, tracked: Tracked) {
  const isTracked = tracked.accounts.has(account)
  const tokens = tracked.tokenAccount(account)
  const mayReturn =
    returnedTo && (tracked.accounts.has(returnedTo) || tracked.tokenAccount(returnedTo).length > 0)
  return isTracked || tokens.length > 0 || mayReturn ? { isTracked, tokens, mayReturn } : undefined
}

/** Undefined where a transaction does not name its account and its cells do not prove it either. */
function toItem(raw: RawTransaction, part: BlockPart): Item | undefined {
  const account = readAccount(raw.account) ?? readAccount(raw.address) ?? accountOf(raw, part)
  if (!account) return undefined
  // A bounce is a message back to the sender: without one there is nothing to look for.
  const source = raw.in_msg?.source
  const isBack =
    source !== undefined &&
    source !== '' &&
    (raw.out_msgs ?? []).some(({ destination }) => sameText(destination, source))
  const returnedTo = isBack ? readAccount(source) : undefined
  const lt = BigInt(raw.transaction_id.lt)
  return { raw, part, account, key: account.toString('latin1'), lt, returnedTo }
}

/** The account by the cells of the transaction, in the workchain of its block. */
function accountOf(raw: RawTransaction, { id }: BlockPart): Buffer | undefined {
  try {
    const cell = proveTransaction(raw)
    if (!cell) return undefined
    const account = cell.beginParse().skip(4).loadBuffer(32)
    return Buffer.concat([Buffer.from([id.workchain & 0xff]), account])
  } catch {
    return undefined
  }
}

const sameText = (a: unknown, b: unknown): boolean =>
  a === b || JSON.stringify(a) === JSON.stringify(b)
