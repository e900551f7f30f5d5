import type { AssetKey } from '../../contract/records/assets.ts'
import type { BlockRef } from '../chain.ts'
import { toHex } from '../hex.ts'
import type { TokenInfo, Tokens } from '../tokens.ts'
import { executedByKey, tokenDetailsKey, tokenMetadataKey } from './keys.ts'
import { askHeader, type PolkadotNodes } from './nodes.ts'
import type { Runtimes } from './runtimes.ts'
import { readStorage } from './storage.ts'
import { tokenOf } from './token.ts'

const noInfo: TokenInfo = { name: null, symbol: null, decimals: null }

/** Finds tokens on the chain. They need no account of their own. */
export function createTokens(tools: {
  nodes: PolkadotNodes
  runtimes: Runtimes
  native: AssetKey
  head(signal: AbortSignal): Promise<BlockRef>
}): Required<Pick<Tokens, 'verifyToken' | 'resolveImport'>> {
  const { nodes, runtimes, native, head } = tools

  /** What the chain says of a token; undefined where it has none of that name. */
  const find = async (asset: AssetKey, signal: AbortSignal): Promise<TokenInfo | undefined> => {
    const token = tokenOf(asset)
    if (!token) return noInfo
    const at = await head(signal)
    const block = { number: at.number, hash: toHex(at.hash) }
    const [details, metadata] = [tokenDetailsKey(token), tokenMetadataKey(token)]
    const keys = [executedByKey, details, metadata]
    const values = await readStorage(nodes, { keys, block }, signal)
    if (!values.get(details)) return undefined
    const described = values.get(metadata)
    // Metadata is optional: the details alone show that the token exists.
    if (!described) return noInfo
    const parentHash = async (within: AbortSignal) =>
      (await askHeader(nodes, block, within)).parentHash
    const codecs = await runtimes.codecsOf({ block, parentHash, values }, signal)
    try {
      return codecs.readTokenInfo(token.pallet, described)
    } catch {
      // The token is there, whatever its description is.
      return noInfo
    }
  }

  const verifyToken: NonNullable<Tokens['verifyToken']> = async ({ token_address }, signal) => {
    const asset = { ...native, contract_address: token_address }
    const info = await find(asset, signal)
    return info
      ? { ok: true, asset, info }
      : { ok: false, field: 'token_address', detail: 'The chain has no such asset.' }
  }
  return {
    verifyToken,
    resolveImport: async ({ asset_type, address, token_address }, signal) => {
      if (!address) return { ok: false, field: 'address', detail: 'Is required.' }
      const found = await verifyToken(
        { asset_type, token_address: token_address ?? Buffer.alloc(0) },
        signal,
      )
      return found.ok ? { ...found, address, token_account_address: Buffer.alloc(0) } : found
    },
  }
}
