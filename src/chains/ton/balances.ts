// Balances after one masterchain block: of the coin by the state of the account, of tokens by get-methods, and many at once
// by API v3 where a node has it.

import { Address, beginCell, type Cell } from '@ton/core'
import {
  type BalanceQuery,
  type BalanceReading,
  BlockGoneError,
  BlockMissingError,
  type BlockRef,
  ChainUnavailableError,
} from '../chain.ts'
import { formatAddress } from './address.ts'
import { bytesOf, readCell } from './cells.ts'
import { createReadIndexed } from './indexed-balances.ts'
import type { TonNodes } from './nodes.ts'
import { readBlockId, readHash } from './raw.ts'

/** What a get-method gave: numbers and cells. */
export type StackItem = bigint | Cell | undefined

/** Runs get-methods of contracts. */
export type GetMethods = {
  /** Undefined where there is no contract, or it has no such method. */
  run(
    address: Buffer,
    method: string,
    stack: readonly Cell[],
    options: {
      seqno?: number
      signal: AbortSignal
      /** A contract that is there and fails is not an answer: nothing may be concluded from it. */
      mustRun?: true
    },
  ): Promise<StackItem[] | undefined>
}

// Get-methods run one by one on a node, so more at once would only wait there.
const atOnce = 16
// The node's words for: there is no contract at this address.
const noContract = new Set([-13, -256])

/** Asks contracts through their get-methods. */
export function createGetMethods({ nodes }: { nodes: TonNodes }): GetMethods {
  return {
    run: async (address, method, stack, { seqno, signal, mustRun }) => {
      const answer = await nodes.ask({
        method: 'runGetMethod',
        params: {
          address: formatAddress(address),
          method,
          stack: stack.map((cell) => ['tvm.Slice', cell.toBoc().toString('base64')]),
          ...(seqno !== undefined && { seqno }),
        },
        ...(seqno !== undefined && { seqno }),
        signal,
        accept: readResult,
      })
      if (mustRun && !answer.stack && !noContract.has(answer.exit_code))
        throw new ContractFailedError(`${method} ended with ${answer.exit_code}`)
      return answer.stack
    },
  }
}

/** A contract is there and does not do what it is asked for. */
class ContractFailedError extends Error {
  override name = 'ContractFailedError'
}

type Ran = { exit_code: number; stack: StackItem[] | undefined }

function readResult(result: unknown): Ran | undefined {
  const { exit_code, stack } = (result ?? {}) as { exit_code?: unknown; stack?: unknown }
  if (typeof exit_code !== 'number' || !Number.isSafeInteger(exit_code)) return undefined
  // 0 and 1 are the two successful exit codes of TVM.
  if (exit_code !== 0 && exit_code !== 1) return { exit_code, stack: undefined }
  return Array.isArray(stack) ? { exit_code, stack: stack.map(readItem) } : undefined
}

function readItem(item: unknown): StackItem {
  const [type, value] = Array.isArray(item) ? (item as [unknown, unknown]) : []
  if (type === 'num') {
    const text = String(value)
    // Both forms are in use: hex and decimal.
    if (!/^-?(?:0x[0-9a-f]+|\d+)$/i.test(text)) return undefined
    return text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text)
  }
  const bytes = (value as { bytes?: unknown } | null)?.bytes ?? value
  return typeof bytes === 'string' ? readCell(bytes) : undefined
}

/** An address that a get-method gave. */
export function readAddressItem(item: StackItem): Buffer | undefined {
  if (item === undefined || typeof item === 'bigint') return undefined
  try {
    return bytesOf(item.beginParse().loadAddress())
  } catch {
    return undefined
  }
}

/** An address as an argument of a get-method. */
export const writeAddress = (address: Buffer): Cell =>
  beginCell()
    .storeAddress(new Address(address.readInt8(0), address.subarray(1)))
    .endCell()

/** Makes the function that reads balances of exactly one block (see `Chain.readBalances`). */
export function createReadBalances({
  nodes,
  methods,
}: {
  nodes: TonNodes
  methods: GetMethods
}): (
  queries: readonly BalanceQuery[],
  at: BlockRef,
  signal: AbortSignal,
) => Promise<BalanceReading[]> {
  const readIndexed = createReadIndexed({ nodes })
  const readNative = async (address: Buffer, at: BlockRef, signal: AbortSignal) => {
    const found = await nodes.ask({
      method: 'getAddressInformation',
      params: { address: formatAddress(address), seqno: at.number },
      seqno: at.number,
      signal,
      accept: (result) => {
        const { balance, block_id } = (result ?? {}) as { balance?: unknown; block_id?: unknown }
        const block = readBlockId(block_id)
        const text = String(balance ?? '')
        // Nodes write -1, or nothing, for an account that was never there.
        if (!/^-?\d*$/.test(text)) return undefined
        // Also where a node does not know the parameter and answers for its newest block.
        const isOther =
          block?.workchain === -1 &&
          (block.seqno !== at.number || !readHash(block.root_hash).equals(at.hash))
        return { isOther, balance: text === '' || text.startsWith('-') ? 0n : BigInt(text) }
      },
    })
    if (found.isOther) throw new BlockGoneError(`the nodes have another block ${at.number}`)
    return found.balance
  }

  const readToken = async (query: BalanceQuery, at: BlockRef, signal: AbortSignal) => {
    const options = { seqno: at.number, signal, mustRun: true as const }
    const account =
      query.token_account_address ??
      readAddressItem(
        (
          await methods.run(
            query.asset.contract_address,
            'get_wallet_address',
            [writeAddress(query.address)],
            options,
          )
        )?.[0],
      )
    // A master that names no account for the address: there is nothing to hold tokens.
    if (!account) return 0n
    const data = await methods.run(account, 'get_wallet_data', [], options)
    const balance = data?.[0]
    // Not deployed before the first tokens arrive.
    return typeof balance === 'bigint' && balance > 0n ? balance : 0n
  }

  return async (queries, at, signal) => {
    if (queries.length === 0) return []
    const keyed = queries.map((query) => ({
      query,
      key: `${query.address.toString('latin1')}/${query.asset.contract_address.toString('latin1')}`,
    }))
    // The same pair may be asked for by several wallets.
    let distinct = [...new Map(keyed.map(({ key, query }) => [key, query]))]
    const balances = new Map<string, bigint | null>()
    const stop = new AbortController()
    const both = AbortSignal.any([signal, stop.signal])
    const readOne = (query: BalanceQuery): Promise<bigint> =>
      query.asset.contract_address.length > 0
        ? readToken(query, at, both)
        : readNative(query.address, at, both)
    const work = async (): Promise<void> => {
      for (let next = distinct.pop(); next; next = distinct.pop()) {
        const [key, query] = next
        try {
          balances.set(key, await readOne(query))
        } catch (error) {
          if (!(error instanceof ContractFailedError)) throw error
          // Anyone can deploy a failing contract: it must not delay other balances.
          balances.set(key, null)
        }
      }
    }
    try {
      const indexed = await readIndexed(
        distinct.map(([, query]) => query),
        at,
        both,
      )
      for (const [key, query] of distinct)
        if (indexed.has(query)) balances.set(key, indexed.get(query)!)
      distinct = distinct.filter(([key]) => !balances.has(key))
      await Promise.all(Array.from({ length: Math.min(atOnce, distinct.length) }, work))
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof BlockMissingError)
        throw new BlockGoneError(`no node has the state of block ${at.number}`, { cause: error })
      if (error instanceof BlockGoneError || error instanceof ChainUnavailableError) throw error
      throw new ChainUnavailableError(error instanceof Error ? error.message : 'no answer')
    } finally {
      // One failure ends the others: the caller reads the whole page again.
      stop.abort()
    }
    return keyed.map(({ key }) => ({ balance: balances.get(key)!, block_number: at.number }))
  }
}
