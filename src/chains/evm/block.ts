import type {
  AssetKey,
  BlockContent,
  ChainBlock,
  Movement,
  SentTransaction,
  Touch,
  Tracked,
} from '../chain.ts'
import type { ReadBlock } from './header.ts'
import type { Internal } from './internal.ts'
import {
  type AssetOf,
  type BytesOf,
  createAddresses,
  createAssets,
  createTopicAddresses,
} from './names.ts'
import { logPlace, type NativeEffects, type NativeMovement, nativeEffects } from './native.ts'
import { bytesOf, quantityOf, type RawReceipt } from './raw.ts'
import { movementsOf, placesOf, readTokenLog, type TokenLog } from './token-logs.ts'

/** What was fetched and proved of a block. */
export type BlockParts = {
  block: ReadBlock
  receipts: readonly RawReceipt[]
  internal: Internal
  native: AssetKey
}

// Every transaction has that many places, so that its movements do not depend on those before it.
const placesPerTransaction = 2 ** 32

const none: readonly never[] = []

type PlacedLog = TokenLog & { transaction: number; place: number }

/**
 * Makes the block of the port out of its parts. It keeps little of their text: many blocks wait to be
 * stored, and what waits is copied by the garbage collector.
 */
export function createBlock({ block, receipts, internal, native }: BlockParts): ChainBlock {
  const { hashOf, transactions } = block
  const addressOf = createAddresses()
  const assetOf = createAssets()
  const effects = transactions.map((transaction, index) =>
    nativeEffects(transaction, receipts[index]!, internal.transfers?.[index] ?? none, addressOf),
  )
  const logs = tokenLogs(receipts, addressOf)
  const rewarded = (block.withdrawals ?? []).map(({ address }) => addressOf(address))
  // Tips go to the miner without a word.
  if (transactions.length > 0) rewarded.unshift(addressOf(block.miner))
  return {
    number: Number(quantityOf(block.number)),
    hash: bytesOf(block.hash),
    parent_hash: bytesOf(block.parentHash),
    time: Number(quantityOf(block.timestamp)) * 1_000,
    contracts: [...new Set(logs.map(({ contract }) => contract))],
    accounts: (contracts) => {
      const accounts = new Set(rewarded)
      for (const { sender, movements } of effects) {
        accounts.add(sender)
        for (const { from, to } of movements) {
          if (from.length > 0) accounts.add(from)
          if (to.length > 0) accounts.add(to)
        }
      }
      for (const { contract, from, to } of logs)
        if (contracts.has(contract)) {
          accounts.add(from)
          accounts.add(to)
        }
      return accounts
    },
    get sent() {
      return effects.map(
        ({ sender, nonce, failed }, index): SentTransaction => ({
          from: sender,
          nonce: Number(quantityOf(nonce)),
          failed,
          hash: () => hashOf(index),
        }),
      )
    },
    ...(internal.lacks !== undefined && { lacks: internal.lacks }),
    decode: (tracked) => {
      const content = decode({ effects, logs, rewarded, native, hashOf, assetOf }, tracked)
      // Counted, so that the operator sees it: internal transfers may be missing.
      return internal.transfers ? content : { ...content, unknown_kinds: { untraced_block: 1 } }
    },
  }
}

function tokenLogs(receipts: readonly RawReceipt[], addressOf: BytesOf): PlacedLog[] {
  const found: PlacedLog[] = []
  const names = { addressOf, addressIn: createTopicAddresses() }
  for (const [transaction, { logs }] of receipts.entries()) {
    let place = logPlace
    for (const log of logs) {
      const read = readTokenLog(log, names)
      if (read) found.push({ ...read, transaction, place })
      place += placesOf(log)
    }
  }
  return found
}

type Decodable = Pick<ReadBlock, 'hashOf'> & {
  effects: readonly NativeEffects[]
  logs: readonly PlacedLog[]
  rewarded: readonly Buffer[]
  native: AssetKey
  assetOf: AssetOf
}

function decode(
  { effects, logs, rewarded, native, hashOf, assetOf }: Decodable,
  { accounts, contracts }: Tracked,
): BlockContent {
  const movements: Movement[] = []
  const touched: Touch[] = []
  // The assets of a block are there once, and so are the addresses of each asset: objects are compared.
  const seen = new Map<AssetKey, Set<Buffer>>()
  const touch = (address: Buffer, asset: AssetKey): void => {
    if (!accounts.has(address)) return
    let addresses = seen.get(asset)
    if (!addresses) {
      addresses = new Set()
      seen.set(asset, addresses)
    }
    if (addresses.has(address)) return
    addresses.add(address)
    touched.push({ address, asset })
  }
  const hashes = new Map<number, Buffer>()
  const hashAt = (transaction: number): Buffer => {
    const hash = hashes.get(transaction) ?? hashOf(transaction)
    hashes.set(transaction, hash)
    return hash
  }
  let isSorted = true
  const add = (
    transaction: number,
    { from, to, value, place, failed }: NativeMovement,
    asset: AssetKey,
  ): void => {
    const { fee, nonce } = effects[transaction]!
    const movement: Movement = {
      ordinal: transaction * placesPerTransaction + place,
      transaction_hash: hashAt(transaction),
      asset,
      from,
      to,
      value,
      transaction_fee: fee,
      detail: { nonce: quantityOf(nonce).toString() },
    }
    if (failed) movement.failed = true
    isSorted &&= movements.length === 0 || movements.at(-1)!.ordinal < movement.ordinal
    movements.push(movement)
    if (failed) return
    touch(from, asset)
    touch(to, asset)
  }

  for (const [index, { sender, movements }] of effects.entries()) {
    touch(sender, native)
    for (const moved of movements) {
      const isSeen = accounts.has(moved.from) || (!moved.failed && accounts.has(moved.to))
      if (isSeen) add(index, moved, native)
    }
  }
  for (const log of logs) {
    const { contract, from, to, transaction } = log
    if (!contracts.has(contract) || !(accounts.has(from) || accounts.has(to))) continue
    let { place } = log
    for (const { asset, value } of movementsOf(log, assetOf)) {
      // Anybody can make a token say that nothing moved.
      if (value > 0n) add(transaction, { from, to, value, place, failed: false }, asset)
      place++
    }
  }
  for (const address of rewarded) touch(address, native)
  if (!isSorted) movements.sort((one, other) => one.ordinal - other.ordinal)
  return { movements, touched }
}
