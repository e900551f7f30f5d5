import { hash } from 'node:crypto'
import { bytesOf, quantityOf, type RawBlock, type RawTransaction } from './raw.ts'
import { dataDigits, encodeRlp, quantityDigits, type RlpItem } from './rlp.ts'
import { listRoot } from './trie.ts'

type Fields = RawTransaction & Record<string, unknown>

const quantity = (value: unknown): string => quantityDigits(value as string | null | undefined)
const data = (value: unknown): string => dataDigits(value as string | null | undefined)
const list = <item>(value: unknown, each: (item: item) => RlpItem): RlpItem =>
  ((value ?? []) as item[]).map(each)

const accessList = (value: unknown): RlpItem =>
  list<{ address: string; storageKeys: string[] }>(value, ({ address, storageKeys }) => [
    dataDigits(address),
    storageKeys.map(dataDigits),
  ])
const authorizations = (value: unknown): RlpItem =>
  list<Record<string, string>>(value, (one) => [
    quantity(one.chainId),
    data(one.address),
    quantity(one.nonce),
    quantity(one.yParity ?? one.v),
    quantity(one.r),
    quantity(one.s),
  ])

const payload = ({ to, value, input }: Fields): RlpItem[] => [
  data(to),
  quantity(value),
  data(input),
]
const signature = ({ yParity, v, r, s }: Fields): RlpItem[] => [
  quantity(yParity ?? v),
  quantity(r),
  quantity(s),
]
const feeMarket = (tx: Fields): RlpItem[] => [
  quantity(tx.chainId),
  quantity(tx.nonce),
  quantity(tx.maxPriorityFeePerGas),
  quantity(tx.maxFeePerGas),
  quantity(tx.gas),
  ...payload(tx),
  accessList(tx.accessList),
]

const depositKind = 0x7e

// What each type signs or commits to, in the order of its proposal.
const encodings: Readonly<Record<number, (tx: Fields) => RlpItem[]>> = {
  0: (tx) => [
    quantity(tx.nonce),
    quantity(tx.gasPrice),
    quantity(tx.gas),
    ...payload(tx),
    quantity(tx.v),
    quantity(tx.r),
    quantity(tx.s),
  ],
  1: (tx) => [
    quantity(tx.chainId),
    quantity(tx.nonce),
    quantity(tx.gasPrice),
    quantity(tx.gas),
    ...payload(tx),
    accessList(tx.accessList),
    ...signature(tx),
  ],
  2: (tx) => [...feeMarket(tx), ...signature(tx)],
  3: (tx) => [
    ...feeMarket(tx),
    quantity(tx.maxFeePerBlobGas),
    list<string>(tx.blobVersionedHashes, dataDigits),
    ...signature(tx),
  ],
  4: (tx) => [...feeMarket(tx), authorizations(tx.authorizationList), ...signature(tx)],
  [depositKind]: (tx) => [
    data(tx.sourceHash),
    data(tx.from),
    data(tx.to),
    quantity(tx.mint),
    quantity(tx.value),
    quantity(tx.gas),
    quantity(tx.isSystemTx ? '0x1' : '0x0'),
    data(tx.input),
  ],
}

/** A transaction as consensus sees it, in hex digits; undefined where its type is not known here. */
export function encodeTransaction(transaction: RawTransaction): string | undefined {
  const type = Number(quantityOf(transaction.type))
  const items = encodings[type]?.(transaction as Fields)
  if (!items) return undefined
  return (type === 0 ? '' : type.toString(16).padStart(2, '0')) + encodeRlp(items)
}

// What was encoded to prove a block is what the hashes of its transactions are made of.
const proved = new WeakMap<readonly RawTransaction[], readonly string[]>()

/**
 * Whether the transactions are those that the header commits to, all of them. Their hashes are not
 * looked at: see `hashOf`. A chain's own types cannot be judged and pass.
 */
export function provesTransactions({ transactions, transactionsRoot }: RawBlock): boolean {
  const encoded: string[] = []
  for (const transaction of transactions) {
    const digits = encodeTransaction(transaction)
    if (digits === undefined) return true
    encoded.push(digits)
  }
  if (listRoot(encoded) !== String(transactionsRoot).toLowerCase()) return false
  proved.set(transactions, encoded)
  return true
}

/** The hash of a block's transaction: made here where it can be, for it costs as much as to prove it. */
export function hashOf(transactions: readonly RawTransaction[], index: number): Buffer {
  const transaction = transactions[index]!
  const digits = isUnsigned(transaction)
    ? undefined
    : (proved.get(transactions)?.[index] ?? encodeTransaction(transaction))
  return digits === undefined
    ? bytesOf(transaction.hash)
    : hash('keccak-256', Buffer.from(digits, 'hex'), 'buffer')
}

/** Test nodes let anybody send for anybody, and then make a hash of their own. */
const isUnsigned = (transaction: RawTransaction): boolean => {
  const { type, r, s } = transaction as Fields
  return Number(quantityOf(type)) !== depositKind && quantity(r) === '' && quantity(s) === ''
}
