// Reads balances and token contracts at a block. It uses the pool and the codec. It guarantees that a failing
// contract affects only its own balances, and that a balance belongs to the block that was asked for, by its
// hash.

import {
  type BalanceQuery,
  type BalanceReading,
  BlockGoneError,
  type BlockHeader,
  type BlockRef,
} from '../../chain.ts'
import { toHex } from '../../hex.ts'
import type { Suspects } from '../../suspects.ts'
import { atHash } from '../codec/abi.ts'
import type { EvmNodes } from '../pool/nodes.ts'
import type { Rpc } from '../pool/rpc.ts'
import { readAlone } from './calls.ts'
import { assertServed, type CallBlock, NodeRefusalError } from './contract-calls.ts'
import { createMulticall } from './multicall.ts'

/** What reading balances needs. */
export type BalanceTools = {
  rpc: Rpc
  pool: EvmNodes
  header(number: number, signal: AbortSignal): Promise<BlockHeader | undefined>
  /** Where Multicall3 stands, if it is there. */
  multicall: string
  /** Added to. */
  suspects: Suspects
}

const quantity = /^0x[0-9a-f]{1,64}$/i

/** Reads balances of exactly one block (see `Chain.readBalances`). */
export function createReadBalances(tools: BalanceTools) {
  const { rpc, pool, suspects } = tools
  const multicall = createMulticall({ rpc, address: tools.multicall, suspects })

  const readNative = async (
    address: Buffer,
    { block, minBlock }: CallBlock,
    signal: AbortSignal,
  ): Promise<bigint> => {
    const answered = await rpc.try({
      method: '_getBalance',
      params: [toHex(address), block],
      ...(minBlock !== undefined && { minBlock }),
      // "header not found" and "hash is not currently canonical" are true of one node only.
      everyNode: true,
      signal,
      accept: (result) =>
        typeof result === 'string' && quantity.test(result) ? BigInt(result) : undefined,
    })
    if (answered.kind === 'answer') return answered.answer
    throw new NodeRefusalError(answered.kind === 'error' ? answered.message : 'no answer of use')
  }

  const readAll = async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    where: CallBlock,
    signal: AbortSignal,
  ): Promise<(bigint | null)[]> => {
    const together = await multicall.read(queries, at, where, signal)
    const isLeft = (_: BalanceQuery, place: number) => together[place] === undefined
    const left = queries.filter(isLeft)
    if (left.length === 0) return together as bigint[]
    const tokens = left.filter(({ asset }) => asset.contract_address.length > 0)
    // The pool makes batches of them.
    const [alone, coins] = await Promise.all([
      readAlone(rpc, tokens, where, signal),
      Promise.all(
        left
          .filter(({ asset }) => asset.contract_address.length === 0)
          .map(({ address }) => readNative(address, where, signal)),
      ),
    ])
    for (const [place, balance] of alone.entries())
      if (balance === null) suspects.add(tokens[place]!.asset.contract_address, at.number)
    const [nextToken, nextCoin] = [alone.values(), coins.values()]
    return queries.map(({ asset }, place) => {
      const word = together[place]
      if (word !== undefined) return word
      return (asset.contract_address.length > 0 ? nextToken : nextCoin).next().value!
    })
  }

  /** The error to give when nodes refuse the state of a block. */
  const explain = async (
    error: NodeRefusalError,
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<Error> => {
    const there = await tools.header(at.number, signal)
    if (!there?.hash.equals(at.hash))
      return new BlockGoneError(`block ${at.number} is not on the chain`)
    // Nodes that serve the newest state have none of this block, whatever words they say it with.
    const newest = pool.head()?.number
    if (newest === undefined || newest <= at.number) return error
    try {
      await assertServed(rpc, { block: 'latest' }, signal)
    } catch {
      signal.throwIfAborted()
      return error
    }
    return new BlockGoneError(`no node has the state of block ${at.number}: ${error.message}`, {
      cause: error,
    })
  }

  return async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<BalanceReading[]> => {
    if (queries.length === 0) return []
    const where = {
      block: atHash(at.hash),
      minBlock: Math.min(at.number, pool.head()?.number ?? at.number),
    }
    try {
      const balances = await readAll(queries, at, where, signal)
      return balances.map((balance) => ({ balance, block_number: at.number }))
    } catch (error) {
      throw error instanceof NodeRefusalError ? await explain(error, at, signal) : error
    }
  }
}
