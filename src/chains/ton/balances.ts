// Balances after one masterchain block: of the coin by the state of the account, of tokens by get-methods, and many at once
// by API v3 where a node has it. An account or a token that cannot be read concerns its own balances only.

import type { Clock } from '../../lib/clock.ts'
import {
  type BalanceQuery,
  type BalanceReading,
  BlockGoneError,
  BlockMissingError,
  type BlockRef,
  ChainUnavailableError,
} from '../chain.ts'
import type { Suspects } from '../suspects.ts'
import { formatAddress } from './address.ts'
import {
  ContractFailedError,
  type GetMethods,
  isNoAddress,
  readAddressItem,
  stateOf,
  writeAddress,
} from './get-methods.ts'
import { createReadIndexed, everyBlock } from './indexed-balances.ts'
import { askIsolated } from './isolated.ts'
import type { TonNodes } from './nodes.ts'
import { readBlockId, readHash } from './raw.ts'

// Get-methods run one by one on a node, so more at once would only wait there.
const atOnce = 16
// How long those are read again that no node could read, of one token and of all.
const mostOfTokenMs = 15_000
const mostApartMs = 60_000

type Keyed = [key: string, query: BalanceQuery]

/** Makes the function that reads balances of exactly one block (see `Chain.readBalances`). */
export function createReadBalances({
  nodes,
  methods,
  clock,
  suspects,
  unfinished,
}: {
  nodes: TonNodes
  methods: GetMethods
  clock: Clock
  /** Added to: tokens of which an account could not be read alone. */
  suspects: Suspects
  /** Added to: tokens that there was no time for. */
  unfinished: Suspects
}): (
  queries: readonly BalanceQuery[],
  at: BlockRef,
  signal: AbortSignal,
) => Promise<BalanceReading[]> {
  const readIndexed = createReadIndexed({ nodes })
  const readNative = async (address: Buffer, at: BlockRef, signal: AbortSignal) => {
    const seqno = at.number
    const question = { ...stateOf(formatAddress(address), { seqno }), accept: readState(at) }
    const control = stateOf(formatAddress(everyBlock), { seqno })
    const found = await askIsolated({ nodes, clock }, { question, control }, signal)
    if (!found) throw new ContractFailedError('no node can read the account', { isCertain: false })
    if (found.isOther) throw new BlockGoneError(`the nodes have another block ${at.number}`)
    return found.balance
  }

  const readToken = async (query: BalanceQuery, at: BlockRef, signal: AbortSignal) => {
    const { token_account_address, address, asset } = query
    const options = { seqno: at.number, signal }
    const unreadable = (method: string) =>
      new ContractFailedError(`${method} does not give what it should`, { isCertain: true })
    let account = token_account_address
    if (!account) {
      const stack = [writeAddress(address)]
      const named = await methods.mustRun(
        asset.contract_address,
        'get_wallet_address',
        stack,
        options,
      )
      // A master that names no account for the address: there is nothing to hold tokens.
      if (!named || isNoAddress(named[0])) return 0n
      account = readAddressItem(named[0])
      if (!account) throw unreadable('get_wallet_address')
    }
    const data = await methods.mustRun(account, 'get_wallet_data', [], options)
    // Not deployed before the first tokens arrive.
    if (!data) return 0n
    const [balance] = data
    if (typeof balance !== 'bigint' || balance < 0n) throw unreadable('get_wallet_data')
    return balance
  }

  return async (queries, at, signal) => {
    if (queries.length === 0) return []
    const keyed = queries.map((query) => ({
      query,
      key: `${query.address.toString('latin1')}/${query.asset.contract_address.toString('latin1')}`,
    }))
    // The same pair may be asked for by several wallets.
    let distinct: Keyed[] = [...new Map(keyed.map(({ key, query }) => [key, query]))]
    const balances = new Map<string, bigint | null>()
    const stop = new AbortController()
    const both = AbortSignal.any([signal, stop.signal])
    const readOne = (query: BalanceQuery): Promise<bigint> =>
      query.asset.contract_address.length > 0
        ? readToken(query, at, both)
        : readNative(query.address, at, both)
    /** Whether it could be read, or the contract itself says that it cannot. */
    const read = async ([key, query]: Keyed): Promise<boolean> => {
      try {
        balances.set(key, await readOne(query))
      } catch (error) {
        if (!(error instanceof ContractFailedError)) throw error
        // Anyone can deploy a failing contract: it must not delay other balances.
        if (!error.isCertain) return false
        balances.set(key, null)
      }
      return true
    }
    /** Reads some at once. What is left: those that no node could read, then the others of their tokens. */
    const readTogether = async (pairs: Keyed[], until = Number.POSITIVE_INFINITY) => {
      const failed: Keyed[] = []
      const unasked: Keyed[] = []
      const doubtful = new Set<string>()
      const next = pairs.values()
      const work = async (): Promise<void> => {
        for (const pair of next) {
          if (doubtful.has(apartKey(pair)) || clock.now() >= until) unasked.push(pair)
          else if (!(await read(pair))) {
            doubtful.add(apartKey(pair))
            failed.push(pair)
          }
        }
      }
      await Promise.all(Array.from({ length: Math.min(atOnce, pairs.length) }, work))
      return [...failed, ...unasked]
    }
    /**
     * Reads what is left of a token. One after the other: what is read beside them cannot be the reason then. As soon as one
     * can be read, the reason was another one, and the others are read together again. Gives what there was no time for.
     */
    const readApart = async (pairs: Keyed[], until: number): Promise<Keyed[]> => {
      let left = pairs
      while (left.length > 0 && clock.now() < until) {
        const [first, ...others] = left
        const { contract_address } = first![1].asset
        if (await read(first!)) left = await readTogether(others, until)
        else {
          balances.set(first![0], null)
          suspects.add(contract_address, at.number)
          left = others
        }
      }
      return left
    }
    const readLeft = async (pairs: Keyed[]): Promise<void> => {
      const until = clock.now() + mostApartMs
      let isUnfinished = false
      for (const some of Map.groupBy(pairs, apartKey).values()) {
        const { contract_address } = some[0]![1].asset
        const wasApart = [suspects, unfinished].some((set) => set.has(contract_address, at.number))
        const left = await readApart(some, Math.min(until, clock.now() + mostOfTokenMs))
        if (left.length === 0) continue
        // Otherwise tokens of strangers that are slow to fail would hold up the others that are read apart.
        if (wasApart || contract_address.length === 0)
          for (const [key] of left) balances.set(key, null)
        else isUnfinished = true
        unfinished.add(contract_address, at.number)
      }
      if (isUnfinished) throw new ChainUnavailableError('there was no time for all balances')
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
      await readLeft(await readTogether(distinct))
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

/** What is read apart from the others: a token with all its accounts, and each account of coin. */
const apartKey = ([key, { asset }]: Keyed): string =>
  asset.contract_address.length > 0 ? asset.contract_address.toString('latin1') : key

/** Reads the state of an account after a block. */
const readState =
  (at: BlockRef) =>
  (result: unknown): { isOther: boolean; balance: bigint } | undefined => {
    const { balance, block_id } = (result ?? {}) as { balance?: unknown; block_id?: unknown }
    const block = readBlockId(block_id)
    const text = String(balance ?? '')
    // Nodes write -1, or nothing, for an account that was never there.
    if (!/^-?\d{0,40}$/.test(text)) return undefined
    // Also where a node does not know the parameter and answers for its newest block.
    const isOther =
      block?.workchain === -1 &&
      (block.seqno !== at.number || !readHash(block.root_hash).equals(at.hash))
    return { isOther, balance: text === '' || text.startsWith('-') ? 0n : BigInt(text) }
  }
