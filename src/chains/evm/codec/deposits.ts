import { depositType } from '../block/fees.ts'
import type { RawTransaction } from './raw.ts'
import { byteDigits, rlpData, rlpList, rlpQuantity } from './rlp.ts'
import { keccakDigits } from './trie.ts'

// Transactions that come from the other chain. Stacks of rollups give the type 0x7e to different lists. Each list has
// another number of items, so what a root commits to in one encoding cannot be shown in another. A node can still add
// fields that its list does not have: nothing reads them.
//
//   OP stack (ethereum-optimism/op-geth, core/types/deposit_tx.go): 8
//   Mantle (mantlenetworkio/op-geth, core/types/deposit_tx.go): 9, or 10 with `ethTxValue`
//   Kroma before its MPT fork (kroma-network/go-ethereum, core/types/deposit_tx_kroma.go): 7
//   Scroll and Morph (scroll-tech/go-ethereum, core/types/l1_message_tx.go; morph-l2/go-ethereum): 6
//
// Receipts of Scroll, Morph and Mantle have the usual fields only (`EncodeIndex` in their core/types/receipt.go): `l1Fee`,
// `tokenRatio` and the `depositNonce` of Mantle are not committed to.

type Fields = RawTransaction & Record<string, unknown>
type Encode = (tx: Fields) => string

const quantity = (value: unknown): string => rlpQuantity(value as string | null | undefined)
const data = (value: unknown): string => rlpData(value as string | null | undefined)

const leading: Encode = (tx) =>
  data(tx.sourceHash) +
  data(tx.from) +
  data(tx.to) +
  quantity(tx.mint) +
  quantity(tx.value) +
  quantity(tx.gas)
const system: Encode = (tx) => quantity(tx.isSystemTx ? '0x1' : '0x0')

const ofOpStack: Encode = (tx) => leading(tx) + system(tx) + data(tx.input)
const ofMantle: Encode = (tx) =>
  leading(tx) +
  system(tx) +
  quantity(tx.ethValue) +
  data(tx.input) +
  (isThere(tx.ethTxValue) ? quantity(tx.ethTxValue) : '')
const ofKroma: Encode = (tx) => leading(tx) + data(tx.input)
// `sender` is the same as `from`, which is the one that is used.
const ofQueue: Encode = (tx) =>
  quantity(tx.queueIndex) +
  quantity(tx.gas) +
  data(tx.to) +
  quantity(tx.value) +
  data(tx.input) +
  data(tx.from)

const isThere = (value: unknown): boolean => value !== undefined && value !== null

/**
 * The items of a transaction of type 0x7e, as its fields show them. Nodes of Mantle and Kroma leave out what is not set,
 * and then show the fields of the OP stack: the hash decides. Only the root proves anything.
 */
export function depositItems(tx: Fields): string {
  if (isThere(tx.queueIndex)) return ofQueue(tx)
  if (isThere(tx.ethValue) || isThere(tx.ethTxValue)) return ofMantle(tx)
  const usual = ofOpStack(tx)
  if (!tx.hash || hasHash(usual, tx.hash)) return usual
  return [ofMantle(tx), ofKroma(tx)].find((items) => hasHash(items, tx.hash)) ?? usual
}

/** What is minted for the sender. The list of a message in a queue has no such item: there it is a node's invention. */
export const provedMint = ({ mint, queueIndex }: Fields): string | undefined =>
  isThere(queueIndex) ? undefined : mint

const hasHash = (items: string, hash: string): boolean =>
  `0x${keccakDigits(byteDigits[depositType] + rlpList(items))}` === hash.toLowerCase()
