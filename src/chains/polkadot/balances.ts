import { keyOf } from '../../lib/bytes.ts'
import {
  type BalanceQuery,
  type BalanceReading,
  BlockGoneError,
  BlockMissingError,
  type BlockRef,
  ChainUnavailableError,
} from '../chain.ts'
import { toHex } from '../hex.ts'
import { askHeader } from './fetch.ts'
import { accountKey, executedByKey } from './keys.ts'
import type { Nodes } from './nodes.ts'
import type { Runtimes } from './runtimes.ts'
import { readStorage } from './storage.ts'

const perRequest = 1_000

/** Makes the function that reads what accounts held after a block (see `Chain.readBalances`). */
export function createReadBalances(tools: { nodes: Nodes; runtimes: Runtimes }) {
  const { nodes, runtimes } = tools

  const readPart = async (
    accounts: readonly Buffer[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<bigint[]> => {
    const block = { number: at.number, hash: toHex(at.hash) }
    const keys = accounts.map(accountKey)
    const values = await readStorage(nodes, { keys: [executedByKey, ...keys], block }, signal)
    const parentHash = async (within: AbortSignal) =>
      (await askHeader(nodes, block, within)).parentHash
    const codecs = await runtimes.codecsOf({ block, parentHash, values }, signal)
    return keys.map((key) => {
      const value = values.get(key)
      // An account with nothing is not there.
      return value ? codecs.readBalance(value) : 0n
    })
  }

  return async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<BalanceReading[]> => {
    if (queries.length === 0) return []
    const accounts = [...new Map(queries.map(({ address }) => [keyOf(address), address])).values()]
    const parts: Buffer[][] = []
    for (let begin = 0; begin < accounts.length; begin += perRequest)
      parts.push(accounts.slice(begin, begin + perRequest))
    try {
      const read = await Promise.all(parts.map((part) => readPart(part, at, signal)))
      const balances = new Map(
        read.flat().map((balance, index) => [keyOf(accounts[index]!), balance]),
      )
      return queries.map(({ address }) => ({
        balance: balances.get(keyOf(address))!,
        block_number: at.number,
      }))
    } catch (error) {
      if (!(error instanceof BlockMissingError)) throw error
      if (error.isCertain) throw new BlockGoneError(error.message, { cause: error })
      // A node that is unreachable may still have the state.
      throw new ChainUnavailableError(error.message, { cause: error })
    }
  }
}
