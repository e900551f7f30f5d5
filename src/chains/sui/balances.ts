import type { Clock } from '../../lib/clock.ts'
import {
  type BalanceQuery,
  type BalanceReading,
  type BlockRef,
  ChainUnavailableError,
} from '../chain.ts'
import { toHex } from '../hex.ts'
import { within } from '../nodes/within.ts'
import { changesIn, coinTypeOf, pairKey } from './checkpoint.ts'
import type { Nodes, SuiNode } from './nodes.ts'
import { fetchPage } from './pages.ts'

const atOnce = 16
/** Read together, within one window of checkpoints. */
const perRead = 100
const readLimitMs = 60_000
const callLimitMs = 10_000
const mostRounds = 20
/** How long a node may have counted a checkpoint before it shows it. */
const settleMs = 40

type Pair = { key: string; owner: string; coinType: string }

/**
 * Reads balances. A node answers for the present only and does not say for which checkpoint that is,
 * so it is worked out: the reading belongs to some checkpoint between the one streamed before and the
 * one shown after, and the changes between are known. Where an address did not change in between
 * that is enough; where it did, further readings leave one possibility.
 */
export const createReadBalances =
  ({ nodes, clock }: { nodes: Nodes; clock: Clock }) =>
  async (
    queries: readonly BalanceQuery[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<BalanceReading[]> => {
    if (queries.length === 0) return []
    const pairs = new Map<string, Pair>()
    const keys = queries.map(({ address, asset }) => {
      const coinType = coinTypeOf(asset)
      const key = pairKey(address, coinType)
      pairs.set(key, { key, owner: toHex(address), coinType })
      return key
    })
    const readings = new Map<string, BalanceReading>()
    const all = [...pairs.values()]
    for (let begin = 0; begin < all.length; begin += perRead) {
      const some = all.slice(begin, begin + perRead)
      const read = await nodes.ask(
        { reached: at.number, full: true },
        signal,
        (node, limited) => readAll(node, some, limited),
        readLimitMs,
      )
      for (const [key, reading] of read) readings.set(key, reading)
    }
    return keys.map((key) => readings.get(key)!)

    async function readAll(
      node: SuiNode,
      all: readonly Pair[],
      limited: AbortSignal,
    ): Promise<Map<string, BalanceReading>> {
      const done = new Map<string, BalanceReading>()
      // What a pair may have had at the first checkpoint that we looked at; undefined before the first reading.
      const candidates = new Map<string, Set<bigint>>()
      const sums = createSums(all)
      let open = [...all]
      for (let round = 0; open.length > 0; round++) {
        if (round === mostRounds)
          throw new ChainUnavailableError('balances change too fast to read')
        const before = await findIndexed(node, limited)
        sums.begin(before)
        const balances = await readOnce(node, open, limited)
        await clock.sleep(settleMs, limited)
        const { height: after } = await node.client.info(limited)
        nodes.showHead(node, after)
        if (after < at.number) throw new Error(`the node is at ${after} only`)
        await sums.extend(after, limited)
        open = open.filter((pair) => {
          const balance = balances.get(pair.key)!
          const possible = new Set(
            sums.between(pair.key, before, after).map((sum) => balance - sum),
          )
          const known = candidates.get(pair.key)
          const left = known ? known.intersection(possible) : possible
          candidates.set(pair.key, left.size > 0 ? left : possible)
          const [base] = left
          if (left.size !== 1 || base === undefined) return true
          done.set(pair.key, { balance: base + sums.at(pair.key, after), block_number: after })
          return false
        })
      }
      return done
    }

    /**
     * A checkpoint that the balances of a node hold for sure. They come behind the execution, up to a
     * minute; a stream shows a checkpoint only when they have it.
     */
    async function findIndexed(node: SuiNode, limited: AbortSignal): Promise<number> {
      if (node.streamed !== undefined) return node.streamed
      return await within(callLimitMs, limited, async (cut) => {
        for await (const { sequenceNumber } of node.client.subscribe(cut))
          return Number(sequenceNumber)
        throw new Error('the stream gave nothing')
      })
    }

    /** Sums of changes since the first checkpoint that was looked at. */
    function createSums(all: readonly Pair[]) {
      const wanted = new Set(all.map(({ key }) => key))
      const steps: ReadonlyMap<string, bigint>[] = []
      let first: number | undefined
      const at = (key: string, number: number): bigint => {
        let sum = 0n
        for (let i = 0; i < number - first!; i++) sum += steps[i]?.get(key) ?? 0n
        return sum
      }
      return {
        begin: (number: number) => {
          first ??= number
        },
        extend: async (to: number, limited: AbortSignal): Promise<void> => {
          while (first! + steps.length < to) {
            const from = first! + steps.length + 1
            const page = await fetchPage(nodes, { from, to }, limited)
            for (const { checkpoint } of page) steps.push(changesIn(checkpoint, wanted))
          }
        },
        at,
        /** After each of the checkpoints, both ends included. */
        between: (key: string, from: number, to: number): bigint[] =>
          Array.from({ length: to - from + 1 }, (_, i) => at(key, from + i)),
      }
    }

    async function readOnce(
      node: SuiNode,
      pending: readonly Pair[],
      limited: AbortSignal,
    ): Promise<Map<string, bigint>> {
      const balances = new Map<string, bigint>()
      const left = [...pending].reverse()
      const work = async () => {
        for (let pair = left.pop(); pair; pair = left.pop()) {
          const waitMs = node.gate.waitMs(clock.now())
          if (waitMs > 0) await clock.sleep(waitMs, limited)
          node.gate.take(clock.now())
          const { key, owner, coinType } = pair
          const read = (cut: AbortSignal) => node.client.balance(owner, coinType, cut)
          balances.set(key, await within(callLimitMs, limited, read))
        }
      }
      await Promise.all(Array.from({ length: atOnce }, work))
      return balances
    }
  }
