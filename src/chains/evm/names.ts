import type { AssetKey } from '../chain.ts'
import { bytesOf } from './raw.ts'

/** The bytes of an address in hex; the same address is the same object. */
export type BytesOf = (address: string) => Buffer

/** An asset; the same asset is the same object. */
export type AssetOf = (contract: Buffer, asset_type: string, token_id: bigint) => AssetKey

/** The addresses of one block, each once: a block names few of them many times. */
export function createAddresses(): BytesOf {
  const known = new Map<string, Buffer>()
  return (address) => {
    let bytes = known.get(address)
    if (!bytes) {
      // Nodes may write them with the letters of a checksum.
      const lower = address.toLowerCase()
      bytes = known.get(lower) ?? bytesOf(lower)
      known.set(lower, bytes)
      if (lower !== address) known.set(address, bytes)
    }
    return bytes
  }
}

// An address fills its topic from the right.
const beforeAddress = `0x${'0'.repeat(24)}`

/** The addresses in the topics of one block, each once. */
export function createTopicAddresses(): BytesOf {
  const known = new Map<string, Buffer>()
  return (topic) => {
    let bytes = known.get(topic)
    if (!bytes) {
      const lower = topic.toLowerCase()
      // A contract may put anything before it.
      const clean = lower.startsWith(beforeAddress) ? lower : beforeAddress + lower.slice(26)
      bytes = known.get(clean) ?? Buffer.from(clean.slice(26), 'hex')
      known.set(clean, bytes)
      if (clean !== topic) known.set(topic, bytes)
    }
    return bytes
  }
}

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
