import { keyOf } from '../../../lib/bytes.ts'
import type { BalanceQuery } from '../../chain.ts'
import { toHex } from '../../hex.ts'
import { encodeCall, readWord, type WordCall } from '../codec/abi.ts'
import type { Rpc } from '../pool/rpc.ts'
import { type CallBlock, callContracts } from './contract-calls.ts'

/** The call that returns a token balance. */
export function callOf({ address, asset }: BalanceQuery): WordCall {
  const to = asset.contract_address
  switch (asset.asset_type) {
    case 'ASSET_TYPE_ERC721':
      return { to, signature: 'ownerOf(uint256)', args: [asset.token_id] }
    case 'ASSET_TYPE_ERC1155':
      return { to, signature: 'balanceOf(address,uint256)', args: [address, asset.token_id] }
    default:
      return { to, signature: 'balanceOf(address)', args: [address] }
  }
}

/** The balance that the returned word means. */
export function balanceOf({ address, asset }: BalanceQuery, word: bigint): bigint {
  if (asset.asset_type !== 'ASSET_TYPE_ERC721') return word
  return word === BigInt(toHex(address)) ? 1n : 0n
}

/** Reads token balances one by one; null where the contract fails, or returns no number. */
export async function readAlone(
  rpc: Rpc,
  queries: readonly BalanceQuery[],
  where: CallBlock,
  signal: AbortSignal,
): Promise<(bigint | null)[]> {
  const returned = await callContracts(rpc, queries.map(callOf).map(encoded), where, signal)
  const words = returned.map((data) => (data === undefined ? undefined : readWord(data)))
  // No number: the contract fails, or there is nothing to read. Which of the two is asked once per contract.
  const unsure = queries.filter((_, at) => words[at] === undefined)
  const holding = await Promise.all(
    [...new Map(unsure.map((query) => [kindOf(query), query]))].map(
      async ([kind, query]) => [kind, await mayHold(rpc, query, where, signal)] as const,
    ),
  )
  const empty = new Set(holding.filter(([, may]) => !may).map(([kind]) => kind))
  return queries.map((query, at) => {
    const word = words[at]
    if (word !== undefined) return balanceOf(query, word)
    return empty.has(kindOf(query)) ? 0n : null
  })
}

const kindOf = ({ asset }: BalanceQuery): string =>
  `${asset.asset_type}/${keyOf(asset.contract_address)}`

const erc721Id = 0x80ac58cdn << 224n

/** Whether a contract without a readable balance may still hold something. */
async function mayHold(
  rpc: Rpc,
  { asset }: BalanceQuery,
  where: CallBlock,
  signal: AbortSignal,
): Promise<boolean> {
  const to = asset.contract_address
  const { block, minBlock } = where
  const code = await rpc.ask({
    method: '_getCode',
    params: [toHex(to), block],
    ...(minBlock !== undefined && { minBlock }),
    // One node without the code may only be behind.
    everyNode: true,
    signal,
    accept: (result) => (typeof result === 'string' ? result : undefined),
  })
  if (code === '0x') return false
  if (asset.asset_type !== 'ASSET_TYPE_ERC721') return true
  // An item that does not exist has no owner, and contracts fail when they are asked for it. That this
  // is the reason is known when the same contract answers another question.
  const call = encoded({ to, signature: 'supportsInterface(bytes4)', args: [erc721Id] })
  const [data] = await callContracts(rpc, [call], where, signal)
  return data === undefined || readWord(data) !== 1n
}

const encoded = ({ to, signature, args }: WordCall) => ({
  to: toHex(to),
  data: encodeCall(signature, ...args),
})
