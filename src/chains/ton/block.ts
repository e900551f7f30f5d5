import type { AssetKey } from '../../contract/records/assets.ts'
import type {
  BlockContent,
  BlockHeader,
  ChainBlock,
  Movement,
  MovementUpdate,
  Touch,
} from '../chain.ts'
import { ChainUnavailableError } from '../chain.ts'
import { nativeMovements, ordinalsPerTransaction, tokenMovements } from './movements.ts'
import { type RawBlockId, type RawTransaction, readAccount } from './raw.ts'
import { decodeTransaction, type TonTransaction } from './transaction.ts'

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

/** A masterchain block with everything that it commits. */
export function createBlock({
  header,
  parts,
  tops,
  native,
}: {
  header: BlockHeader
  parts: readonly BlockPart[]
  tops: readonly RawBlockId[]
  native: AssetKey
}): ChainBlock {
  const items = parts
    .flatMap((part) => part.transactions.map((raw) => toItem(raw, part)))
    // The same order from any source; effects come after their causes.
    .sort((a, b) =>
      a.lt < b.lt ? -1 : a.lt > b.lt ? 1 : a.key < b.key ? -1 : a.key > b.key ? 1 : 0,
    )
  const decoded = new Map<Item, TonTransaction>()
  const decodeItem = (item: Item): TonTransaction => {
    const known = decoded.get(item)
    if (known) return known
    const transaction = decodeTransaction(item.raw, item.account)
    if (!transaction) {
      item.part.accuse()
      throw new ChainUnavailableError(
        `block ${header.number}: a node gave a transaction that is not the one of its hash`,
      )
    }
    decoded.set(item, transaction)
    return transaction
  }

  return {
    ...header,
    contracts: [],
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
      let unknown = 0
      for (const [index, item] of items.entries()) {
        const { account, returnedTo, part } = item
        const isTracked = tracked.accounts.has(account)
        const tokens = tracked.tokenAccount(account)
        const mayReturn =
          returnedTo &&
          (tracked.accounts.has(returnedTo) || tracked.tokenAccount(returnedTo).length > 0)
        if (!isTracked && tokens.length === 0 && !mayReturn) continue
        const transaction = decodeItem(item)
        const ordinal = index * ordinalsPerTransaction
        const place = { ordinal, block: part.id, mc_seq_no: header.number }
        if (isTracked) {
          movements.push(...nativeMovements(transaction, place, { asset: native, account }))
          touched.push({ address: account, asset: native })
        }
        for (const [number, token] of tokens.entries()) {
          const moved = tokenMovements(transaction, place, token, number)
          if (moved) movements.push(...moved)
          else unknown++
          touched.push({ address: token.owner, asset: token.asset })
        }
        if (mayReturn && transaction.isReturned && transaction.in)
          updates.push({
            transfer_hash: transaction.in.hash,
            detail: { status: 'failed', bounced: 'true' },
          })
      }
      return {
        movements,
        touched,
        updates,
        ...(unknown > 0 && { unknown_kinds: { jetton_message: unknown } }),
      }
    },
    detail: { tops },
  }
}

function toItem(raw: RawTransaction, part: BlockPart): Item {
  const account = readAccount(raw.account) ?? readAccount(raw.address)
  if (!account) {
    part.accuse()
    throw new ChainUnavailableError('a node gave a transaction without an account')
  }
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

const sameText = (a: unknown, b: unknown): boolean =>
  a === b || JSON.stringify(a) === JSON.stringify(b)
