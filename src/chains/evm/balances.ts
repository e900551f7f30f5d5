import {
  type BalanceQuery,
  type BalanceReading,
  BlockGoneError,
  type BlockHeader,
  type BlockRef,
} from '../chain.ts'
import { toHex } from '../hex.ts'
import {
  atHash,
  decodeAggregate,
  encodeAggregate,
  encodeCall,
  readWord,
  type WordCall,
} from './abi.ts'
import { callContract, NodeRefusalError } from './contract-calls.ts'
import type { Nodes } from './nodes.ts'
import { bytesOf } from './raw.ts'
import type { Rpc } from './rpc.ts'

/** What reading balances needs. */
export type BalanceTools = {
  rpc: Rpc
  pool: Nodes
  header(number: number, signal: AbortSignal): Promise<BlockHeader | undefined>
  /** Where Multicall3 stands, if it is there. */
  multicall: string
}

const perAggregate = 200
// Below it a batch of plain calls is as good, and needs no contract.
const worthAggregating = 8
// A chain may get the contract one day.
const lookAgainAfter = 1_000

/** Reads balances of exactly one block (see `Chain.readBalances`). */
export function createReadBalances(tools: BalanceTools) {
  const { rpc, pool } = tools
  const multicall = bytesOf(tools.multicall)
  let absentBelow = 0

  const readPlain = async (
    query: BalanceQuery,
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<bigint> => {
    const minBlock = Math.min(at.number, pool.head()?.number ?? at.number)
    const block = atHash(at.hash)
    if (query.asset.contract_address.length > 0) {
      const { to, signature, args } = callOf(query)
      const call = { to: toHex(to), data: encodeCall(signature, ...args) }
      const data = await callContract(rpc, { call, block, minBlock }, signal)
      // A contract that fails or says nothing holds nothing for anybody.
      return balanceOf(query, (data !== undefined && readWord(data)) || 0n)
    }
    const answered = await rpc.try({
      method: '_getBalance',
      params: [toHex(query.address), block],
      minBlock,
      signal,
      accept: (result) =>
        typeof result === 'string' && /^0x[0-9a-f]{1,64}$/i.test(result)
          ? BigInt(result)
          : undefined,
    })
    if (answered.kind === 'answer') return answered.answer
    const reason = answered.kind === 'error' ? answered.message : 'no answer of use'
    throw new NodeRefusalError(reason)
  }

  /** Undefined where the contract is not there at that block. */
  const readTogether = async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<bigint[] | undefined> => {
    const calls = queries.map((query) =>
      query.asset.contract_address.length > 0
        ? callOf(query)
        : { to: multicall, signature: 'getEthBalance(address)', args: [query.address] },
    )
    const call = { to: tools.multicall, data: encodeAggregate(calls) }
    const minBlock = Math.min(at.number, pool.head()?.number ?? at.number)
    const returned = await callContract(rpc, { call, block: atHash(at.hash), minBlock }, signal)
    const answers = returned === undefined ? undefined : decodeAggregate(returned, queries.length)
    if (!answers) {
      absentBelow = at.number + lookAgainAfter
      return undefined
    }
    if (!answers.includes(undefined))
      return answers.map((word, index) => balanceOf(queries[index]!, word!))
    return await Promise.all(
      answers.map((word, index) => {
        const query = queries[index]!
        // Its neighbours may have burnt the gas: alone it may well answer.
        return word === undefined ? readPlain(query, at, signal) : balanceOf(query, word)
      }),
    )
  }

  const readPart = async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<bigint[]> => {
    if (queries.length >= worthAggregating && at.number >= absentBelow) {
      const together = await readTogether(queries, at, signal)
      if (together) return together
    }
    // The pool makes batches of them.
    return await Promise.all(queries.map((query) => readPlain(query, at, signal)))
  }

  return async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<BalanceReading[]> => {
    if (queries.length === 0) return []
    const parts: (readonly BalanceQuery[])[] = []
    for (let begin = 0; begin < queries.length; begin += perAggregate)
      parts.push(queries.slice(begin, begin + perAggregate))
    try {
      const balances = await Promise.all(parts.map((part) => readPart(part, at, signal)))
      return balances.flat().map((balance) => ({ balance, block_number: at.number }))
    } catch (error) {
      if (!(error instanceof NodeRefusalError)) throw error
      const there = await tools.header(at.number, signal)
      if (!there?.hash.equals(at.hash))
        throw new BlockGoneError(`block ${at.number} is not on the chain`)
      if (!isPassing(error.message)) throw new BlockGoneError(error.message, { cause: error })
      throw error
    }
  }
}

const isPassing = (message: string): boolean =>
  /sync|time|overload|temporar|service|try again|gateway|connection|shutting|limit|answer of use/i.test(
    message,
  )

function callOf({ address, asset }: BalanceQuery): WordCall {
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
function balanceOf({ address, asset }: BalanceQuery, word: bigint): bigint {
  if (asset.asset_type !== 'ASSET_TYPE_ERC721') return word
  return word === BigInt(toHex(address)) ? 1n : 0n
}
