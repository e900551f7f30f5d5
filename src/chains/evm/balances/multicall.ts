import { keyOf } from '../../../lib/bytes.ts'
import { type BalanceQuery, type BlockRef, ChainUnavailableError } from '../../chain.ts'
import type { Suspects } from '../../suspects.ts'
import { decodeAggregate, encodeAggregate } from '../codec/abi.ts'
import { bytesOf, toQuantity } from '../codec/raw.ts'
import type { Rpc } from '../pool/rpc.ts'
import { balanceOf, callOf } from './calls.ts'
import { assertServed, type CallBlock, readData } from './contract-calls.ts'

/** Reads balances through Multicall3, as far as that can be done. */
export type Multicall = {
  /** In the order of the queries; undefined for those that have to be read in another way. */
  read(
    queries: readonly BalanceQuery[],
    at: BlockRef,
    where: CallBlock,
    signal: AbortSignal,
  ): Promise<(bigint | undefined)[]>
}

// More would cost more to bisect when one of them fails.
const perAggregate = 200
// Below it a batch of plain calls is as good, and needs no contract.
const worthAggregating = 8
// A chain may get the contract one day.
const lookAgainAfter = 1_000
// What all calls together may use, so that a token cannot make a node work until its own limit.
const gasPerQuery = 120_000
const gasBeside = 1_000_000

/**
 * Many balances in one call. A token can burn the gas of all calls after its own, or of the whole: such
 * a one is found by halving what fails, and is left to plain calls from then on. The others continue
 * together, whatever a token does.
 */
export function createMulticall({
  rpc,
  address,
  suspects,
}: {
  rpc: Rpc
  address: string
  suspects: Suspects
}): Multicall {
  const multicall = bytesOf(address)
  let absentBelow = 0
  const suspect = (query: BalanceQuery | undefined, at: BlockRef): void => {
    if (query) suspects.add(query.asset.contract_address, at.number)
  }

  /** What each call gave; `failed` where there is no such answer. */
  const aggregate = async (
    queries: readonly BalanceQuery[],
    where: CallBlock,
    signal: AbortSignal,
  ): Promise<(bigint | undefined)[] | 'failed' | 'absent'> => {
    const calls = queries.map((query) =>
      query.asset.contract_address.length > 0
        ? callOf(query)
        : { to: multicall, signature: 'getEthBalance(address)', args: [query.address] },
    )
    const gas = toQuantity(gasBeside + gasPerQuery * queries.length)
    const call = { to: address, data: encodeAggregate(calls), gas }
    try {
      const said = await rpc.try({
        method: '_call',
        params: [call, where.block],
        ...(where.minBlock !== undefined && { minBlock: where.minBlock }),
        signal,
        accept: readData,
      })
      if (said.kind !== 'answer') return 'failed'
      return decodeAggregate(said.answer, queries.length) ?? 'absent'
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ChainUnavailableError) return 'failed'
      throw error
    }
  }

  const readPart = async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    where: CallBlock,
    signal: AbortSignal,
  ): Promise<(bigint | undefined)[]> => {
    const unread = () => queries.map(() => undefined)
    if (queries.length < worthAggregating || at.number < absentBelow) return unread()
    const words = await aggregate(queries, where, signal)
    if (words === 'absent') {
      absentBelow = at.number + lookAgainAfter
      return unread()
    }
    // A node that is down fails as well: `assertServed` distinguishes the two before anything is suspected.
    if (words === 'failed') return await readHalves(queries, at, where, signal)
    const first = words.indexOf(undefined)
    if (first === -1) return words.map((word, place) => balanceOf(queries[place]!, word!))
    // One that fails alone harms none. Where several do, the first one may have burnt the gas of the
    // others, or the one before it.
    const failing = new Set(
      queries.filter((_, place) => words[place] === undefined).map(contractOf),
    )
    if (failing.size > 1) {
      suspect(queries[first], at)
      suspect(queries[first - 1], at)
    }
    return words.map((word, place) =>
      word === undefined ? undefined : balanceOf(queries[place]!, word),
    )
  }

  /** The calls fail as a whole: what makes them fail is in one of the halves. */
  const readHalves = async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    where: CallBlock,
    signal: AbortSignal,
  ): Promise<(bigint | undefined)[]> => {
    await assertServed(rpc, where, signal)
    const contracts = [...new Set(queries.map(contractOf))]
    if (contracts.length === 1) {
      const [query] = queries
      // Where not even the coin can be read, it is not the contract that we think it is.
      if (query!.asset.contract_address.length === 0) absentBelow = at.number + lookAgainAfter
      else suspect(query, at)
      return queries.map(() => undefined)
    }
    const half = new Set(contracts.slice(0, contracts.length / 2))
    const isFirst = queries.map((query) => half.has(contractOf(query)))
    const [left, right] = await Promise.all(
      [true, false].map((side) =>
        readPart(
          queries.filter((_, place) => isFirst[place] === side),
          at,
          where,
          signal,
        ),
      ),
    )
    const next = [left!.values(), right!.values()] as const
    return isFirst.map((side) => next[side ? 0 : 1].next().value)
  }

  return {
    read: async (queries, at, where, signal) => {
      const answers: (bigint | undefined)[] = queries.map(() => undefined)
      const places = [...queries.keys()].filter(
        (place) => !suspects.has(queries[place]!.asset.contract_address, at.number),
      )
      const parts: number[][] = []
      for (let begin = 0; begin < places.length; begin += perAggregate)
        parts.push(places.slice(begin, begin + perAggregate))
      await Promise.all(
        parts.map(async (part) => {
          const asked = part.map((place) => queries[place]!)
          const read = await readPart(asked, at, where, signal)
          for (const [index, place] of part.entries()) answers[place] = read[index]
        }),
      )
      return answers
    },
  }
}

const contractOf = ({ asset }: BalanceQuery): string => keyOf(asset.contract_address)
