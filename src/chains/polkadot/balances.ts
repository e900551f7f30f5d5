// Balances are read from the state of a block, many keys in one request, and proved by the state root of its header where the
// network is verified.

import {
  type BalanceQuery,
  type BalanceReading,
  BlockGoneError,
  BlockMissingError,
  type BlockRef,
  ChainUnavailableError,
} from '../chain.ts'
import { toHex } from '../hex.ts'
import type { VerificationCounts } from '../verification.ts'
import { accountKey, executedByKey, tokenAccountKey } from './keys.ts'
import { askHeader, type PolkadotNodes } from './nodes.ts'
import type { Runtimes } from './runtimes.ts'
import { readProvenStorage, readStorage, type StorageQuery } from './storage.ts'
import { type Token, tokenOf } from './token.ts'

// Keys of one request: nodes limit the size of a request and of its answer.
const perRequest = 1_000

/** A place in the state that holds a balance of the coin, or of a token. */
type Holding = { key: string; token: Token | undefined }

/** A balance by its place; null where what stands there cannot be decoded. */
type Held = [key: string, balance: bigint | null]

/** Makes the function that reads what accounts held after a block (see `Chain.readBalances`). */
export function createReadBalances(tools: {
  nodes: PolkadotNodes
  runtimes: Runtimes
  counts: VerificationCounts
}) {
  const { nodes, runtimes, counts } = tools

  const readKeys = async (query: StorageQuery, signal: AbortSignal) => {
    if (counts.mode !== 'full') return await readStorage(nodes, query, signal)
    // The root of the state is in the header, which every proof must lead to.
    const { stateRoot: root } = await askHeader(nodes, query.block, signal)
    return await readProvenStorage(nodes, { ...query, root, counts }, signal)
  }

  const readPart = async (
    holdings: readonly Holding[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<Held[]> => {
    const block = { number: at.number, hash: toHex(at.hash) }
    const keys = holdings.map(({ key }) => key)
    // The version of the runtime comes with the values, so that both are of one block.
    const values = await readKeys({ keys: [executedByKey, ...keys], block }, signal)
    const parentHash = async (within: AbortSignal) =>
      (await askHeader(nodes, block, within)).parentHash
    const codecs = await runtimes.codecsOf({ block, parentHash, values }, signal)
    return holdings.map(({ key, token }): Held => {
      const value = values.get(key)
      // An account with nothing is not there.
      if (!value) return [key, 0n]
      try {
        const read = token
          ? codecs.readTokenBalance(token.pallet, value)
          : codecs.readBalance(value)
        return [key, read]
      } catch {
        // ScaleError, and what the library throws: an account of another form (a migration of the runtime that is under way), or
        // damaged on its way. The others of the request are read.
        return [key, null]
      }
    })
  }

  return async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<BalanceReading[]> => {
    if (queries.length === 0) return []
    const asked = queries.map(({ address, asset }): Holding => {
      const token = tokenOf(asset)
      return { key: token ? tokenAccountKey(token, address) : accountKey(address), token }
    })
    // The same place may be asked for by several wallets.
    const holdings = [...new Map(asked.map((holding) => [holding.key, holding])).values()]
    const parts: Holding[][] = []
    for (let begin = 0; begin < holdings.length; begin += perRequest)
      parts.push(holdings.slice(begin, begin + perRequest))
    try {
      const read = await Promise.all(parts.map((part) => readPart(part, at, signal)))
      const balances = new Map(read.flat())
      return asked.map(({ key }) => ({ balance: balances.get(key)!, block_number: at.number }))
    } catch (error) {
      if (!(error instanceof BlockMissingError)) throw error
      if (error.isCertain) throw new BlockGoneError(error.message, { cause: error })
      // A node that is unreachable may still have the state.
      throw new ChainUnavailableError(error.message, { cause: error })
    }
  }
}
