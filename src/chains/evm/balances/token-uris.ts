import type { AssetKey } from '../../../contract/records/assets.ts'
import { toHex } from '../../hex.ts'
import { encodeCall, readText } from '../codec/abi.ts'
import type { Rpc } from '../pool/rpc.ts'
import { callContract } from './contract-calls.ts'

// An image may stand in the text itself.
const longestUri = 64 * 1024

/** Reads where items say that they are described, at the head; null where they do not say. */
export function createReadTokenUris({ rpc }: { rpc: Rpc }) {
  const readOne = async (asset: AssetKey, signal: AbortSignal): Promise<string | null> => {
    const isMulti = asset.asset_type === 'ASSET_TYPE_ERC1155'
    const signature = isMulti ? 'uri(uint256)' : 'tokenURI(uint256)'
    const call = {
      to: toHex(asset.contract_address),
      data: encodeCall(signature, asset.token_id),
    }
    const data = await callContract(rpc, { call, block: 'latest' }, signal)
    const uri = readText(data ?? '0x', longestUri)
    if (!uri) return null
    // ERC-1155: one text for all kinds, with a place for the id.
    return isMulti ? uri.replaceAll('{id}', asset.token_id.toString(16).padStart(64, '0')) : uri
  }
  return (assets: readonly AssetKey[], signal: AbortSignal): Promise<(string | null)[]> =>
    Promise.all(assets.map((asset) => readOne(asset, signal)))
}
