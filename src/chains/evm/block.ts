import { createByteMap, distinctBytes } from '../../lib/bytes.ts'
import type { AssetKey, BlockContent, ChainBlock, Movement, Touch, Tracked } from '../chain.ts'
import type { Internal } from './internal.ts'
import { logPlace, type NativeEffects, type NativeMovement, nativeEffects } from './native.ts'
import { bytesOf, quantityOf, type RawBlock, type RawLog, type RawReceipt } from './raw.ts'
import { endsOf, isTokenLog, movementsOf, placesOf, type TokenEnds } from './token-logs.ts'
import { hashOf } from './transactions.ts'

/** What was fetched and proved of a block. */
export type BlockParts = {
  block: RawBlock
  receipts: readonly RawReceipt[]
  internal: Internal
  native: AssetKey
}

// Every transaction has that many places, so that its movements do not depend on those before it.
const placesPerTransaction = 2 ** 32

const none: readonly never[] = []

type TokenLog = TokenEnds & { log: RawLog; transaction: number; place: number }

/** Makes the block of the port out of its parts. */
export function createBlock({ block, receipts, internal, native }: BlockParts): ChainBlock {
  const effects = block.transactions.map((transaction, index) =>
    nativeEffects(transaction, receipts[index]!, internal.transfers?.[index] ?? none, () =>
      hashOf(block.transactions, index),
    ),
  )
  const logs = receipts.flatMap(tokenLogs)
  const rewarded = [
    // Tips go to the miner without a word.
    ...(block.transactions.length > 0 ? [bytesOf(block.miner)] : []),
    ...(block.withdrawals ?? []).map(({ address }) => bytesOf(address)),
  ]
  return {
    number: Number(quantityOf(block.number)),
    hash: bytesOf(block.hash),
    parent_hash: bytesOf(block.parentHash),
    time: Number(quantityOf(block.timestamp)) * 1_000,
    contracts: distinctBytes(logs.map(({ contract }) => contract)),
    *accounts(contracts) {
      for (const { movements, touched } of effects) {
        yield* touched
        for (const { from, to } of movements) {
          if (from.length > 0) yield from
          if (to.length > 0) yield to
        }
      }
      yield* rewarded
      for (const { contract, from, to } of logs)
        if (contracts.has(contract)) {
          yield from
          yield to
        }
    },
    sent: effects.map(({ sender, nonce, failed, hash }) => ({
      from: sender,
      nonce: Number(nonce),
      failed,
      hash,
    })),
    ...(internal.lacks !== undefined && { lacks: internal.lacks }),
    decode: (tracked) => {
      const content = decode({ effects, logs, rewarded, native }, tracked)
      // Counted, so that the operator sees it: internal transfers may be missing.
      return internal.transfers ? content : { ...content, unknown_kinds: { untraced_block: 1 } }
    },
  }
}

function tokenLogs({ logs }: RawReceipt, transaction: number): TokenLog[] {
  const found: TokenLog[] = []
  let place = logPlace
  for (const log of logs) {
    if (isTokenLog(log)) found.push({ ...endsOf(log), log, transaction, place })
    place += placesOf(log)
  }
  return found
}

type Decodable = {
  effects: readonly NativeEffects[]
  logs: readonly TokenLog[]
  rewarded: readonly Buffer[]
  native: AssetKey
}

function decode({ effects, logs, rewarded, native }: Decodable, tracked: Tracked): BlockContent {
  const { accounts, contracts } = tracked
  const movements: Movement[] = []
  const touched: Touch[] = []
  // The contracts of each token id: a batch may move thousands of ids to one address.
  const seen = createByteMap<Map<bigint, Buffer[]>>()
  const touch = (address: Buffer, asset: AssetKey): void => {
    if (!accounts.has(address)) return
    const { contract_address, token_id } = asset
    const ids = seen.get(address) ?? new Map<bigint, Buffer[]>()
    const contracts = ids.get(token_id)
    if (contracts?.some((other) => other.equals(contract_address))) return
    if (contracts) contracts.push(contract_address)
    else ids.set(token_id, [contract_address])
    seen.set(address, ids)
    touched.push({ address, asset })
  }
  const add = (
    transaction: number,
    {
      from,
      to,
      value,
      place,
      failed = false,
    }: Omit<NativeMovement, 'failed'> & { failed?: boolean },
    asset: AssetKey,
  ): void => {
    const { hash, fee, nonce } = effects[transaction]!
    const movement: Movement = {
      ordinal: transaction * placesPerTransaction + place,
      transaction_hash: hash(),
      asset,
      from,
      to,
      value,
      transaction_fee: fee,
      detail: { nonce },
    }
    if (failed) movement.failed = true
    movements.push(movement)
    if (failed) return
    touch(from, asset)
    touch(to, asset)
  }

  for (const [index, effect] of effects.entries()) {
    for (const address of effect.touched) touch(address, native)
    for (const moved of effect.movements) {
      const isSeen = accounts.has(moved.from) || (!moved.failed && accounts.has(moved.to))
      if (isSeen) add(index, moved, native)
    }
  }
  for (const { contract, from, to, log, transaction, place } of logs) {
    if (!contracts.has(contract) || !(accounts.has(from) || accounts.has(to))) continue
    // Anybody can make a token say that nothing moved.
    for (const [at, { asset, value }] of movementsOf(log).entries())
      if (value > 0n) add(transaction, { from, to, value, place: place + at }, asset)
  }
  for (const address of rewarded) touch(address, native)
  return {
    movements: movements.toSorted((one, other) => one.ordinal - other.ordinal),
    touched,
  }
}
