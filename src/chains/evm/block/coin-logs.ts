import { hash } from 'node:crypto'
import { type RawReceipt, type ReadTransaction, typeOf } from '../codec/raw.ts'
import { coinMintTopic, coinTransferTopic, transferTopic } from '../codec/topics.ts'
import { placesOf } from './token-logs.ts'

// Coin that comes from the other chain without a value or a call that shows it. Logs of a contract of the network do.
//
// Polygon: one transaction at the end of a block does all that comes from the other chain (state sync). Every payment
// is a `LogTransfer` of 0x1010 (0xPolygon/bor: core/bor_fee_log.go). Until the fork Madhugiri it is in no root and has no
// type, and its hash is derived from the block (core/types/bor_receipt.go). Since then its type is 0x7f and it is in the
// roots (PIP-74), but nodes do not send the data that its encoding has (core/types/tx_state_sync.go).
//
// Morph has transactions of the same type 0x7f, with a signature: those have a sender.
//
// ZKsync: a request from the other chain mints its value for its sender, and what is left for the refund recipient
// (matter-labs/era-contracts: system-contracts/bootloader/bootloader.yul, contracts/L2BaseToken.sol).
//
// Celo: the coin is a token as well. Its contract moves coin by the precompile 0xfd, which no value and no call shows, and
// emits `Transfer`; only that contract may call the precompile (docs.celo.org/specs/token-duality). A payment by value
// emits nothing, so the two never count the same coin.

// The type of a state sync.
const stateSyncType = 0x7f

/** The types of requests from the other chain and of upgrades on ZKsync. */
export const priorityTypes: ReadonlySet<number> = new Set([0xfe, 0xff])

const polygonCoin = '0x0000000000000000000000000000000000001010'
const zksyncCoin = '0x000000000000000000000000000000000000800a'

/** A movement of coin; ends are topics, and without `from` it was minted. */
export type CoinLog = { offset: number; from: string | undefined; to: string; value: bigint }

/** Whether a transaction is a state sync, as marked by `markStateSync`. */
export const isStateSync = (transaction: {
  type?: string | undefined
  from: string
  to?: string | null | undefined
}): boolean =>
  typeOf(transaction) === stateSyncType && isZero(transaction.from) && isZero(transaction.to)

const isZero = (address: string | null | undefined): boolean => /^0x0{40}$/.test(address ?? '')

/** The hash of a state sync that is in no root. */
export const stateSyncHash = ({ number, hash: block }: { number: string; hash: string }): string =>
  `0x${hash(
    'keccak-256',
    Buffer.concat([
      Buffer.from('matic-bor-receipt-'),
      Buffer.from(BigInt(number).toString(16).padStart(16, '0'), 'hex'),
      Buffer.from(block.slice(2), 'hex'),
    ]),
    'hex',
  )}`

/**
 * Gives a state sync that is in no root the type that it has since Madhugiri, so that a network has to accept that type.
 * Nodes of any other network could forge deposits with it.
 */
export function markStateSync<transaction extends { hash: string; to?: string | null | undefined }>(
  block: { number: string; hash: string },
  transactions: readonly transaction[],
): readonly transaction[] {
  const last = transactions.at(-1)
  if (!last || typeof last.hash !== 'string' || !isZero(last.to)) return transactions
  if (last.hash.toLowerCase() !== stateSyncHash(block)) return transactions
  return [...transactions.slice(0, -1), { ...last, type: `0x${stateSyncType.toString(16)}` }]
}

/** What moved according to the logs; undefined where values and calls show it. */
export function coinLogsOf(
  transaction: ReadTransaction,
  receipt: RawReceipt,
): readonly CoinLog[] | undefined {
  if (isStateSync(transaction)) return readLogs(receipt, readPolygon)
  if (!priorityTypes.has(typeOf(transaction))) return undefined
  const found = readLogs(receipt, readZksync)
  return found.length > 0 ? found : undefined
}

/** What moved through the contract of a coin that is a token as well; a mint comes from the zero address. */
export const tokenLogsOfCoin = (receipt: RawReceipt, contract: string): readonly CoinLog[] =>
  readLogs(receipt, ({ address, topics: [topic, from, to, ...more] }) => {
    if (address.toLowerCase() !== contract || topic !== transferTopic) return undefined
    if (!from || !to || more.length > 0) return undefined
    return { from: /^0x0+$/.test(from) ? undefined : from, to }
  })

type RawLog = RawReceipt['logs'][number]
type Read = (log: RawLog) => Pick<CoinLog, 'from' | 'to'> | undefined

function readLogs({ logs }: RawReceipt, read: Read): CoinLog[] {
  const found: CoinLog[] = []
  let offset = 0
  for (const log of logs) {
    const ends = log.data.length >= 66 ? read(log) : undefined
    const value = ends ? BigInt(log.data.slice(0, 66)) : 0n
    if (ends && value > 0n) found.push({ ...ends, value, offset })
    offset += placesOf(log)
  }
  return found
}

const readPolygon: Read = ({ address, topics: [topic, , from, to] }) =>
  address.toLowerCase() === polygonCoin && topic === coinTransferTopic && from && to
    ? { from, to }
    : undefined

const readZksync: Read = ({ address, topics: [topic, first, second] }) => {
  if (address.toLowerCase() !== zksyncCoin || !first) return undefined
  if (topic === coinMintTopic) return { from: undefined, to: first }
  return topic === transferTopic && second ? { from: first, to: second } : undefined
}
