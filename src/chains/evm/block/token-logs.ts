// Token movements from logs. Any contract can emit any log: lengths are checked before anything is allocated, and the type as
// which a contract is registered decides what an argument means.

import type { AssetKey, AssetType } from '../../../contract/records/assets.ts'
import type { RawLog } from '../codec/raw.ts'
import { batchTopic, singleTopic, transferTopic } from '../codec/topics.ts'
import { type AssetOf, inTopic, type NamedAddresses } from './names.ts'

/** What is kept of a log that says that a token moved: the numbers of its ends, and its amounts unread. */
export type TokenLog = {
  contract: number
  from: number
  to: number
  topic: string
  /** The third argument where it is indexed: the item of an ERC-721. */
  id: string | undefined
  data: string
}

/** A movement of a token. */
export type TokenMovement = { asset: AssetKey; value: bigint }

const isTransfer = ({ topics, data }: RawLog): boolean =>
  topics[0] === transferTopic && ((topics.length === 3 && data.length >= 66) || topics.length === 4)

const isMulti = ({ topics, data }: RawLog): boolean =>
  topics.length === 4 &&
  (topics[0] === singleTopic || topics[0] === batchTopic) &&
  data.length >= 130

/** Reads a log that says, in a form that can be read, that a token moved; undefined for any other. */
export function readTokenLog(log: RawLog, addresses: NamedAddresses): TokenLog | undefined {
  const isPlain = isTransfer(log)
  if (!isPlain && !isMulti(log)) return undefined
  const { address, topics, data } = log
  const at = isPlain ? 1 : 2
  return {
    contract: addresses.add(address),
    from: addresses.add(topics[at]!, inTopic),
    to: addresses.add(topics[at + 1]!, inTopic),
    topic: isPlain ? transferTopic : topics[0]!,
    id: isPlain ? topics[3] : undefined,
    data,
  }
}

/**
 * How many places a log takes in the order of its transaction, so that what comes after it has the
 * same place whether this log is looked at or not.
 */
export const placesOf = (log: RawLog): number =>
  log.topics[0] === batchTopic && isMulti(log) ? Math.max(1, readBatch(log.data)?.length ?? 1) : 1

/** The type of token that makes logs of this form, as the standards have it. */
export const usualType = ({ topic, id }: TokenLog): AssetType => {
  if (topic !== transferTopic) return 'ASSET_TYPE_ERC1155'
  return id === undefined ? 'ASSET_TYPE_ERC20' : 'ASSET_TYPE_ERC721'
}

/**
 * What moved by a log of a contract of this type; empty where it has no such logs, or its data make no
 * sense. ERC-20 and ERC-721 have the same event, and some contracts index what the others do not: only
 * the type says whether the third argument is an amount or an item.
 */
export function movementsOf(
  { topic, id, data }: TokenLog,
  { contract, asset_type }: { contract: Buffer; asset_type: AssetType },
  assetOf: AssetOf,
): TokenMovement[] {
  if ((topic === transferTopic) === (asset_type === 'ASSET_TYPE_ERC1155')) return []
  if (topic === transferTopic) {
    const third = id === undefined ? wordAt(data, 0)! : BigInt(id)
    return asset_type === 'ASSET_TYPE_ERC20'
      ? [{ asset: assetOf(contract, asset_type, 0n), value: third }]
      : [{ asset: assetOf(contract, asset_type, third), value: 1n }]
  }
  const multi = (token_id: bigint) => assetOf(contract, asset_type, token_id)
  if (topic === singleTopic) return [{ asset: multi(wordAt(data, 0)!), value: wordAt(data, 1)! }]
  return (readBatch(data) ?? []).map(({ id, value }) => ({ asset: multi(id), value }))
}

/** The word that begins at a multiple of 32 bytes. */
const wordAt = (data: string, index: number): bigint | undefined => {
  const begin = 2 + index * 64
  const digits = data.slice(begin, begin + 64)
  return digits.length === 64 ? BigInt(`0x${digits}`) : undefined
}

function readBatch(data: string): { id: bigint; value: bigint }[] | undefined {
  const ids = readArray(data, wordAt(data, 0))
  const values = readArray(data, wordAt(data, 1))
  if (!ids || !values || ids.length !== values.length) return undefined
  return ids.map((id, index) => ({ id, value: values[index]! }))
}

function readArray(data: string, offset: bigint | undefined): bigint[] | undefined {
  const words = BigInt(Math.floor((data.length - 2) / 64))
  if (offset === undefined || offset % 32n !== 0n) return undefined
  const begin = offset / 32n
  if (begin >= words) return undefined
  const length = wordAt(data, Number(begin))!
  // Before anything is made of that length: it may be any number.
  if (length > words - begin - 1n) return undefined
  return Array.from({ length: Number(length) }, (_, at) => wordAt(data, Number(begin) + 1 + at)!)
}
