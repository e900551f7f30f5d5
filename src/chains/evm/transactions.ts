import { hash } from 'node:crypto'
import { bytesOf, quantityOf, type RawBlock, type RawTransaction } from './raw.ts'
import { encodeRlp, quantityBytes, type RlpItem } from './rlp.ts'
import { listRoot } from './trie.ts'

type Fields = RawTransaction & Record<string, unknown>

const quantity = (value: unknown): Buffer =>
  quantityBytes(quantityOf(value as string | null | undefined))
const data = (value: unknown): Buffer => (value ? bytesOf(value as string) : Buffer.alloc(0))
const list = <item>(value: unknown, each: (item: item) => RlpItem): RlpItem =>
  ((value ?? []) as item[]).map(each)

const accessList = (value: unknown): RlpItem =>
  list<{ address: string; storageKeys: string[] }>(value, ({ address, storageKeys }) => [
    bytesOf(address),
    storageKeys.map(bytesOf),
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
    list<string>(tx.blobVersionedHashes, bytesOf),
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

/** A transaction as consensus sees it; undefined where its type is not known here. */
export function encodeTransaction(transaction: RawTransaction): Buffer | undefined {
  const type = Number(quantityOf(transaction.type))
  const encoded = encodings[type]?.(transaction as Fields)
  if (!encoded) return undefined
  const bytes = encodeRlp(encoded)
  return type === 0 ? bytes : Buffer.concat([Buffer.of(type), bytes])
}

/** Test nodes let anybody send for anybody, and then make a hash of their own. */
const isUnsigned = (transaction: RawTransaction): boolean => {
  const { type, r, s } = transaction as Fields
  const isNone = (value: unknown) => quantityOf(value as string | undefined) === 0n
  return Number(quantityOf(type)) !== depositKind && isNone(r) && isNone(s)
}

/**
 * Whether the transactions are those that the header commits to: each has the hash that it says,
 * and they are all of them. A chain's own types cannot be judged and pass.
 */
export function provesTransactions({ transactions, transactionsRoot }: RawBlock): boolean {
  const encoded: Buffer[] = []
  for (const transaction of transactions) {
    const bytes = encodeTransaction(transaction)
    if (!bytes) return true
    const digest = `0x${hash('keccak-256', bytes, 'hex')}`
    if (digest !== transaction.hash.toLowerCase() && !isUnsigned(transaction)) return false
    encoded.push(bytes)
  }
  return listRoot(encoded).equals(bytesOf(String(transactionsRoot)))
}
