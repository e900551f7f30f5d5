import type { AssetKey } from '../../../contract/records/assets.ts'
import { toHex } from '../../hex.ts'
import type { TokenCheck, TokenInfo } from '../../tokens.ts'
import { encodeCall, isLongText, readText, readWord } from '../codec/abi.ts'
import type { Rpc } from '../pool/rpc.ts'
import { callContract } from './contract-calls.ts'

// The ERC-165 ids of the two standards; ERC-20 has none.
const interfaces: Readonly<Record<string, bigint>> = {
  CONTRACT_TYPE_ERC721: 0x80ac58cdn,
  CONTRACT_TYPE_ERC1155: 0xd9b67a26n,
}

// ERC-20 has it as a uint8.
const mostDecimals = 255n

// Not the zero address: some tokens refuse to read its balance.
const anyHolder = Buffer.alloc(20, 1)

/** Reads a contract at the head and proves its type (docs/decisions/transfers.md). */
export function createVerifyContract({ rpc }: { rpc: Rpc }) {
  return async (
    { contract_address, contract_type }: { contract_address: Buffer; contract_type: string },
    signal: AbortSignal,
  ): Promise<TokenCheck<{ info: TokenInfo }>> => {
    const to = toHex(contract_address)
    const read = (signature: string, ...args: (bigint | Uint8Array)[]) =>
      callContract(
        rpc,
        { call: { to, data: encodeCall(signature, ...args) }, block: 'latest' },
        signal,
      )
    const number = async (signature: string, ...args: (bigint | Uint8Array)[]) => {
      const data = await read(signature, ...args)
      return data === undefined ? undefined : readWord(data)
    }
    const long: string[] = []
    const text = async (signature: string) => {
      const data = (await read(signature)) ?? '0x'
      if (isLongText(data)) long.push(signature)
      return readText(data) ?? null
    }
    const refuse = (detail: string) => ({ ok: false as const, field: 'contract_address', detail })
    const tooLong = () => refuse(`The text of ${long.toSorted().join(' and ')} is too long.`)
    // A bytes4 is at the left of its word.
    const supports = async (id: bigint) =>
      (await number('supportsInterface(bytes4)', id << 224n)) === 1n

    const code = await rpc.ask({
      method: '_getCode',
      params: [to, 'latest'],
      signal,
      accept: (result) => (typeof result === 'string' ? result : undefined),
    })
    if (code === '0x')
      return {
        ok: false,
        field: 'contract_address',
        detail: 'There is no contract at this address.',
      }
    const other = (detail: string) => ({ ok: false as const, field: 'contract_type', detail })
    const wanted = interfaces[contract_type]
    if (wanted !== undefined) {
      if (!(await supports(wanted))) return other(`The contract does not say that it is one.`)
      const [name, symbol] = await Promise.all([text('name()'), text('symbol()')])
      if (long.length > 0) return tooLong()
      return { ok: true, info: { name, symbol, decimals: null } }
    }
    // An ERC-721 has balanceOf, and often totalSupply: it would pass the test of an ERC-20 below.
    for (const [type, id] of Object.entries(interfaces))
      if (await supports(id)) return other(`The contract is of ${type}.`)
    const [supply, balance, decimals, name, symbol] = await Promise.all([
      number('totalSupply()'),
      number('balanceOf(address)', anyHolder),
      number('decimals()'),
      text('name()'),
      text('symbol()'),
    ])
    if (supply === undefined || balance === undefined)
      return other('The contract has no totalSupply and balanceOf.')
    // As unknown it could be tracked, but applications that show amounts would take it for a usual token.
    if (decimals !== undefined && decimals > mostDecimals)
      return refuse(`decimals() answers more than ${mostDecimals}.`)
    if (long.length > 0) return tooLong()
    return {
      ok: true,
      info: { name, symbol, decimals: decimals === undefined ? null : Number(decimals) },
    }
  }
}

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
