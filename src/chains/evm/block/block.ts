// A block in the form of the port. Addresses are numbers into one list of distinct ones (`names.ts`): a block names
// few accounts many times, and the tracker looks each of them up once. Decoding is lazy: `contracts` and `accounts` are
// asked first, and only the parts that concern a tracked account become movements.

import type { AssetKey } from '../../../contract/records/assets.ts'
import type { ByteSet, Pieces } from '../../../lib/bytes.ts'
import type {
  BlockContent,
  BlockHeader,
  ChainBlock,
  Movement,
  SentTransaction,
  Touch,
  Tracked,
} from '../../chain.ts'
import type { ReadBlock } from '../codec/header.ts'
import { bytesOf, quantityOf, type RawReceipt } from '../codec/raw.ts'
import { isStateSync } from './coin-logs.ts'
import type { Internal } from './internal.ts'
import {
  calleeAt,
  createAssets,
  createCallees,
  createNamedAddresses,
  type NamedAddresses,
} from './names.ts'
import {
  internalPlace,
  logPlace,
  type NativeEffects,
  type NativeMovement,
  nativeEffects,
  noCallee,
  noParty,
  placesPerTransaction,
  valuePlace,
} from './native.ts'
import { createNodeClaims, type NodeClaims, type NodeClaimTools } from './node-claims.ts'
import { movementsOf, placesOf, readTokenLog, type TokenLog, usualType } from './token-logs.ts'

/** What was fetched and proved of a block. */
export type BlockParts = {
  block: ReadBlock
  receipts: readonly RawReceipt[]
  internal: Internal
  native: AssetKey
  /** The contract through which the coin is also sent as a token; in lower case. */
  coinContract?: string | undefined
  /** Without them nothing is checked. */
  claims?: NodeClaimTools
}

const none: readonly never[] = []

type PlacedLog = TokenLog & { transaction: number; place: number }

/** Makes the block of the port out of its parts. */
export const createBlock = (parts: BlockParts): ChainBlock => blockOf(reduce(parts), parts.claims)

/** What is kept of a block until it is stored. */
type Reduced = BlockHeader &
  Pick<ReadBlock, 'hashOf' | 'encodedOf'> & {
    addresses: Pieces
    callees: Uint8Array
    effects: readonly NativeEffects[]
    logs: readonly PlacedLog[]
    contracts: readonly Buffer[]
    rewarded: readonly number[]
    native: AssetKey
    lacks: string | undefined
    isTraced: boolean | undefined
    isKnown: boolean
    tracers: readonly string[]
    untraced: number
  }

/**
 * Extracts the parts that may concern accounts. Many blocks wait to be stored, and all that waits is
 * copied by the garbage collector: their text must not. So this is a function of its own, because a
 * function that stays keeps all that the functions beside it have seen.
 */
function reduce({ block, receipts, internal, native, coinContract }: BlockParts): Reduced {
  const { hashOf, encodedOf, transactions } = block
  const list = createNamedAddresses()
  const called = createCallees()
  const names = { addresses: list, callees: called }
  const effects = transactions.map((transaction, index) => {
    const receipt = receipts[index]!
    const calls = internal.transfers?.[index] ?? none
    return nativeEffects({ transaction, receipt, internal: calls, coinContract }, names)
  })
  const logs = tokenLogs(receipts, list)
  const rewarded = (block.withdrawals ?? []).map(({ address }) => list.add(address))
  // Tips go to the miner without an event, and so does the reward of a block without transactions.
  rewarded.unshift(list.add(block.miner))
  const addresses = list.read()
  return {
    number: Number(quantityOf(block.number)),
    hash: bytesOf(block.hash),
    parent_hash: bytesOf(block.parentHash),
    time: Number(quantityOf(block.timestamp)) * 1_000,
    addresses,
    callees: called.read(),
    effects,
    logs,
    // Distinct objects, because `addressAt` gives the same object for the same address.
    contracts: [...new Set(logs.map(({ contract }) => addressAt(addresses, contract)))],
    rewarded,
    native,
    hashOf,
    encodedOf,
    lacks: internal.lacks,
    isTraced: internal.isTraced,
    isKnown: internal.transfers !== undefined,
    tracers: internal.tracers ?? none,
    untraced: transactions.filter(isStateSync).length,
  }
}

const noAddress = Buffer.alloc(0)

/** The same address is the same object. */
const addressAt = ({ distinct, at }: Pieces, number: number): Buffer =>
  number === noParty ? noAddress : distinct[at[number]!]!

function blockOf(reduced: Reduced, claimTools: NodeClaimTools | undefined): ChainBlock {
  const { number, hash, parent_hash, time, contracts, addresses, effects, lacks } = reduced
  const claims = createNodeClaims(reduced, claimTools)
  return {
    ...(claimTools && { needsCheck: claims.needsCheck, check: claims.check }),
    number,
    hash,
    parent_hash,
    time,
    contracts,
    accounts: (watched) => accountsOf(reduced, watched),
    get sent() {
      return effects.flatMap(({ sender, nonce, failed }, index): SentTransaction[] => {
        // From the other chain, and its receipt says none: as nonce 0 it would replace the first transaction of the account.
        if (nonce === undefined || nonce === null) return []
        return [
          {
            from: addressAt(addresses, sender),
            nonce: Number(quantityOf(nonce)),
            failed,
            hash: () => reduced.hashOf(index),
          },
        ]
      })
    },
    ...(lacks !== undefined && { lacks }),
    ...(reduced.isTraced !== undefined && { isTraced: reduced.isTraced }),
    decode: (tracked) => {
      const content = decode(reduced, tracked, claims)
      // Counted, so that the operator sees it: internal transfers may be missing.
      return reduced.isKnown ? content : { ...content, unknown_kinds: { untraced_block: 1 } }
    },
  }
}

function accountsOf(
  { addresses, contracts, rewarded, effects, logs }: Reduced,
  watched: ByteSet,
): Set<Buffer> {
  const accounts = new Set<Buffer>()
  const add = (number: number): void => {
    if (number !== noParty) accounts.add(addressAt(addresses, number))
  }
  for (const number of rewarded) add(number)
  for (const { sender, movements } of effects) {
    add(sender)
    for (const { from, to } of movements) {
      add(from)
      add(to)
    }
  }
  // Compared as objects: one look-up per contract instead of one per log.
  const these = new Set(contracts.filter(watched.has))
  for (const { contract, from, to } of logs)
    if (these.has(addressAt(addresses, contract))) {
      add(from)
      add(to)
    }
  return accounts
}

function tokenLogs(receipts: readonly RawReceipt[], addresses: NamedAddresses): PlacedLog[] {
  const found: PlacedLog[] = []
  for (let transaction = 0; transaction < receipts.length; transaction++) {
    let place = logPlace
    for (const log of receipts[transaction]!.logs) {
      const read = readTokenLog(log, addresses)
      if (read) found.push({ ...read, transaction, place })
      place += placesOf(log)
    }
  }
  return found
}

function decode(
  { addresses, callees, effects, logs, contracts, rewarded, native, hashOf }: Reduced,
  tracked: Tracked,
  claims: NodeClaims,
): BlockContent {
  const assetOf = createAssets()
  const movements: Movement[] = []
  const touched: Touch[] = []
  // Each address is looked for once, when it is first asked about.
  const states = new Int8Array(addresses.distinct.length)
  const isTracked = (number: number): boolean => {
    if (number === noParty) return false
    const place = addresses.at[number]!
    states[place] ||= tracked.accounts.has(addresses.distinct[place]!) ? 1 : -1
    return states[place] === 1
  }
  // The assets of a block are there once: objects are compared.
  const seen = new Map<AssetKey, Set<number>>()
  const touch = (number: number, asset: AssetKey): void => {
    let places = seen.get(asset)
    if (!places) {
      places = new Set()
      seen.set(asset, places)
    }
    const place = addresses.at[number]!
    if (places.has(place)) return
    places.add(place)
    touched.push({ address: addresses.distinct[place]!, asset })
  }
  let hashed = -1
  let hash: Buffer
  const hashAt = (transaction: number): Buffer => {
    if (hashed !== transaction) hash = hashOf(transaction)
    hashed = transaction
    return hash
  }
  const isConfirmed = (from: number, to: number): boolean =>
    (!isTracked(from) || claims.isConfirmed(from)) && (!isTracked(to) || claims.isConfirmed(to))
  let last = -1
  let isSorted = true
  const add = (
    transaction: number,
    { from, to, value, place, failed }: NativeMovement,
    asset: AssetKey,
  ): Movement => {
    const { fee, nonce } = effects[transaction]!
    const ordinal = transaction * placesPerTransaction + place
    const movement: Movement = {
      ordinal,
      transaction_hash: hashAt(transaction),
      asset,
      from: addressAt(addresses, from),
      to: addressAt(addresses, to),
      value,
      transaction_fee: fee,
      detail: { nonce: decimal(nonce) },
    }
    if (failed) movement.failed = true
    // Only traces need it: everything else is proved by the header.
    if (place >= internalPlace && asset === native && !isConfirmed(from, to))
      movement.detail = { ...movement.detail, verified: false }
    if (ordinal < last) isSorted = false
    last = ordinal
    movements.push(movement)
    return movement
  }
  /** A transaction that sends no coin costs its fee all the same: a record of its sender says it. */
  const addCall = (transaction: number, { sender, callee }: NativeEffects): void => {
    const nothing = { from: sender, to: noParty, value: 0n, place: valuePlace, failed: false }
    const movement = add(transaction, nothing, native)
    movement.only = 'from'
    if (callee !== noParty) movement.to = calleeAt(callees, callee)
  }
  /** The movements between two accounts, for the tracked ones. */
  const see = (transaction: number, moved: NativeMovement, asset: AssetKey): void => {
    const isSent = isTracked(moved.from)
    const isReceived = !moved.failed && isTracked(moved.to)
    if (!isSent && !isReceived) return
    add(transaction, moved, asset)
    // A failed transfer moved nothing. Its sender is read because of the fee.
    if (isSent && !moved.failed) touch(moved.from, asset)
    if (isReceived) touch(moved.to, asset)
  }

  for (let index = 0; index < effects.length; index++) {
    const effect = effects[index]!
    const { sender, movements } = effect
    if (isTracked(sender)) {
      touch(sender, native)
      if (effect.callee !== noCallee) addCall(index, effect)
    }
    for (const moved of movements) see(index, moved, native)
  }
  // Organizations may have registered a contract as different types; each sees its own.
  const watched = new Map(
    contracts
      .filter(tracked.contracts.has)
      .map((contract) => [contract, tracked.assetTypesOf?.(contract)]),
  )
  for (const log of logs) {
    const contract = addressAt(addresses, log.contract)
    if (!watched.has(contract)) continue
    const { from, to, transaction } = log
    if (!isTracked(from) && !isTracked(to)) continue
    for (const asset_type of watched.get(contract) ?? [usualType(log)]) {
      let { place } = log
      for (const { asset, value } of movementsOf(log, { contract, asset_type }, assetOf)) {
        // Any token can emit an event without a movement.
        if (value > 0n) see(transaction, { from, to, value, place, failed: false }, asset)
        place++
      }
    }
  }
  for (const number of rewarded) if (isTracked(number)) touch(number, native)
  // Token logs come after all coin movements, so that ordinals are out of order only where a block has both.
  if (!isSorted) movements.sort((one, other) => one.ordinal - other.ordinal)
  return { movements, touched }
}

const decimal = (quantity: string | undefined): string => {
  const number = Number(quantity)
  return Number.isSafeInteger(number) ? String(number) : quantityOf(quantity).toString()
}
