import { createByteMap } from '../../lib/bytes.ts'
import type { AssetKey } from '../chain.ts'

/**
 * The bytes of an address whose digits begin at a place of a text: after the prefix, or in a topic,
 * which it fills from the right. The same address is the same object.
 */
export type BytesOf = (text: string, begin?: number) => Buffer

/** An asset; the same asset is the same object. */
export type AssetOf = (contract: Buffer, asset_type: string, token_id: bigint) => AssetKey

const size = 20

/** The addresses of one block, each once: a block names few of them many times. */
export function createAddresses(): BytesOf {
  const known = createByteMap<Buffer>()
  const bytes = Buffer.allocUnsafe(size)
  return (text, begin = 2) => {
    const digits = text.slice(begin)
    if (bytes.write(digits, 'hex') !== size) throw new TypeError(`${text} is no address`)
    let address = known.get(bytes)
    if (!address) {
      address = Buffer.from(bytes)
      known.set(address, address)
    }
    return address
  }
}

/** Where an address begins in a topic. */
export const inTopic = 26

/** The assets of one block, of contracts that are there once. */
export function createAssets(): AssetOf {
  const known = new Map<Buffer, Map<string, AssetKey>>()
  return (contract_address, asset_type, token_id) => {
    let ofContract = known.get(contract_address)
    if (!ofContract) {
      ofContract = new Map()
      known.set(contract_address, ofContract)
    }
    const key = token_id === 0n ? asset_type : `${asset_type}/${token_id}`
    let asset = ofContract.get(key)
    if (!asset) {
      asset = { asset_type, contract_address, token_id }
      ofContract.set(key, asset)
    }
    return asset
  }
}
