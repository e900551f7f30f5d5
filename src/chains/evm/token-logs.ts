import type { AssetKey } from '../chain.ts'
import { bytesOf, type RawLog } from './raw.ts'
import { batchTopic, singleTopic, transferTopic } from './topics.ts'

/** The ends of a token movement, found without reading its amounts. */
export type TokenEnds = { contract: Buffer; from: Buffer; to: Buffer }

/** A movement of a token. */
export type TokenMovement = { asset: AssetKey; value: bigint }

const isTransfer = ({ topics, data }: RawLog): boolean =>
  topics[0] === transferTopic && ((topics.length === 3 && data.length >= 66) || topics.length === 4)

const isMulti = ({ topics, data }: RawLog): boolean =>
  topics.length === 4 &&
  (topics[0] === singleTopic || topics[0] === batchTopic) &&
  data.length >= 130

/** Whether a log says, in a form that can be read, that a token moved. */
export const isTokenLog = (log: RawLog): boolean => isTransfer(log) || isMulti(log)

// An address fills its topic from the right.
const addressIn = (topic: string): Buffer => Buffer.from(topic.slice(26), 'hex')

/** The ends of a log for which `isTokenLog` holds. */
export function endsOf({ address, topics }: RawLog): TokenEnds {
  const at = topics[0] === transferTopic ? 1 : 2
  return {
    contract: bytesOf(address),
    from: addressIn(topics[at]!),
    to: addressIn(topics[at + 1]!),
  }
}

/**
 * How many places a log takes in the order of its transaction, so that what comes after it has the
 * same place whether this log is looked at or not.
 */
export const placesOf = (log: RawLog): number =>
  log.topics[0] === batchTopic && isMulti(log) ? Math.max(1, readBatch(log.data)?.length ?? 1) : 1

/** What moved by a log for which `isTokenLog` holds; empty where its data make no sense. */
export function movementsOf(log: RawLog): TokenMovement[] {
  const { topics, data } = log
  const contract_address = bytesOf(log.address)
  const asset = (kind: string, token_id: bigint): AssetKey => ({
    asset_type: `ASSET_TYPE_${kind}`,
    contract_address,
    token_id,
  })
  if (topics[0] === transferTopic)
    return topics.length === 3
      ? [{ asset: asset('ERC20', 0n), value: wordAt(data, 0)! }]
      : [{ asset: asset('ERC721', BigInt(topics[3]!)), value: 1n }]
  if (topics[0] === singleTopic)
    return [{ asset: asset('ERC1155', wordAt(data, 0)!), value: wordAt(data, 1)! }]
  return (readBatch(data) ?? []).map(({ id, value }) => ({ asset: asset('ERC1155', id), value }))
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
