import type { Clock } from '../../lib/clock.ts'
import {
  type BalanceQuery,
  type BalanceReading,
  type BlockRef,
  ChainUnavailableError,
} from '../chain.ts'
import { toHex } from '../hex.ts'
import { NodeFault } from '../nodes/fault.ts'
import { within } from '../nodes/within.ts'
import { changesIn, coinTypeOf, pairKey } from './checkpoint.ts'
import { type HeldBalance, statusOf } from './client.ts'
import type { SuiNode, SuiNodes } from './nodes.ts'
import { fetchPage } from './pages.ts'
import { suiType } from './records.ts'

// Bounds of one reading: calls at once, time in all, time of a call, and rounds until the balance
// is unique.
const atOnce = 16
/** Read together, within one window of checkpoints. */
const perRead = 100
const readLimitMs = 60_000
/** How long pairs are read again, one by one, that a node could not answer for. */
const againMs = 60_000
const callLimitMs = 10_000
const mostRounds = 20
/** How long a node may have counted a checkpoint before it shows it. */
const settleMs = 40
/** How often the height is asked for again where another machine of a load balancer answers. */
const heightTries = 5
const stalePauseMs = 100
/** A server reads the balance first and its height for the header then: checkpoints that may lie between. */
const headerSlack = 2

type Pair = { key: string; owner: string; coinType: string }

/**
 * Reads balances. A node answers for the present only, so the checkpoint of a reading is computed: it is
 * between the one streamed before and the one shown after, and the changes between are known. Where
 * an address did not change in between, one reading is enough. Where it did, further readings leave one
 * possibility. A URL can be a load balancer with machines at different heights: a reading whose
 * response reports a height below the stream is discarded and asked for again.
 */
export const createReadBalances =
  ({ nodes, clock, staleMs }: { nodes: SuiNodes; clock: Clock; staleMs: number }) =>
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
      // A node that is behind would answer with an older balance, so it must have reached the
      // block.
      const read = await nodes.ask(
        { reached: at.number, full: true },
        signal,
        (node, limited) => readAll(node, some, limited),
        readLimitMs,
      )
      for (const [key, reading] of read) readings.set(key, reading)
    }
    await readAgain(all.filter(({ key }) => !readings.has(key)))
    return keys.map((key) => readings.get(key) ?? { balance: null, block_number: at.number })

    /** One node could not answer for these. Each is asked for alone, of every node that can be asked. */
    async function readAgain(refused: Pair[]): Promise<void> {
      const until = clock.now() + againMs
      const work = async (): Promise<void> => {
        // What is left then is read another time, like what all nodes refuse: one coin type must not hold up the others.
        for (let pair = refused.pop(); pair && clock.now() < until; pair = refused.pop()) {
          const { key, coinType } = pair
          const ask = async (node: SuiNode, limited: AbortSignal): Promise<BalanceReading> => {
            const reading = (await readAll(node, [pair!], limited)).get(key)
            if (!reading) throw new NodeFault('refused', `no balance of ${coinType}`)
            return reading
          }
          try {
            const demand = { reached: at.number, full: true }
            readings.set(key, await nodes.ask(demand, signal, ask, readLimitMs))
          } catch (error) {
            signal.throwIfAborted()
            // Also where another node is limited or slow: what was read of other coin types is not discarded for it.
            if (!(error instanceof ChainUnavailableError)) throw error
          }
        }
      }
      await Promise.all(Array.from({ length: Math.min(atOnce, refused.length) }, work))
    }

    /** Without those that the node cannot answer for. */
    async function readAll(
      node: SuiNode,
      all: readonly Pair[],
      limited: AbortSignal,
    ): Promise<Map<string, BalanceReading>> {
      const done = new Map<string, BalanceReading>()
      // What a pair may have had at the first checkpoint that we looked at; undefined before the first reading.
      const candidates = new Map<string, Set<bigint>>()
      const sums = createSums(nodes, all)
      let open = [...all]
      for (let round = 0; open.length > 0; round++) {
        if (round === mostRounds)
          throw new ChainUnavailableError('balances change too fast to read')
        const before = await findIndexed(node, limited)
        sums.begin(Math.max(before - headerSlack, node.lowest, 0))
        const balances = await readOnce(node, { pending: open, before }, limited)
        const heights = [...balances.values()].map(({ height }) => height ?? 0)
        const shown = Math.max(before, ...heights)
        const after = await findHeight(node, shown, limited)
        nodes.showHead(node, after)
        if (after < at.number) throw new NodeFault('behind', `the node is at ${after} only`)
        await sums.extend(after, limited)
        open = open.filter((pair) => {
          const held = balances.get(pair.key)
          if (!held) return false
          const { balance, height = before } = held
          // Only the first reading can be older than its header: later ones follow a pause.
          const lowest = round > 0 ? before : Math.min(before, height - headerSlack)
          const possible = new Set(
            // Subtracting what changed since the first checkpoint gives the balance at that
            // checkpoint, one candidate per possible moment.
            sums.between(pair.key, lowest, after).map((sum) => balance - sum),
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

    /** The height after a reading, at least what was shown before: another machine may be behind. */
    async function findHeight(node: SuiNode, shown: number, limited: AbortSignal): Promise<number> {
      for (let tries = 0; ; tries++) {
        await clock.sleep(settleMs, limited)
        const { height } = await node.client.info(limited)
        if (height >= shown || tries === heightTries) return Math.max(height, shown)
      }
    }

    async function readOnce(
      node: SuiNode,
      { pending, before }: { pending: readonly Pair[]; before: number },
      limited: AbortSignal,
    ): Promise<Map<string, HeldBalance>> {
      const balances = new Map<string, HeldBalance>()
      const left = [...pending].reverse()
      const until = clock.now() + staleMs
      const ask = async (owner: string, coinType: string): Promise<HeldBalance> => {
        const waitMs = node.gate.waitMs(clock.now())
        if (waitMs > 0) await clock.sleep(waitMs, limited)
        node.gate.take(clock.now())
        const read = (cut: AbortSignal) => node.client.balance(owner, coinType, cut)
        return await within(callLimitMs, limited, read)
      }
      const readPair = async ({ owner, coinType }: Pair): Promise<HeldBalance> => {
        for (;;) {
          const held = await ask(owner, coinType)
          const { height = before } = held
          if (height >= before) return held
          if (clock.now() >= until)
            throw new NodeFault('behind', `balances at ${height}, the stream is at ${before}`)
          await clock.sleep(stalePauseMs, limited)
        }
      }
      const doubtful = new Set<string>()
      /** Whether the node serves the same account, and cannot answer for this coin type only. */
      const isOfCoin = async ({ owner, coinType }: Pair, error: unknown): Promise<boolean> => {
        limited.throwIfAborted()
        const isOther = error instanceof NodeFault && error.kind === 'behind'
        if (isOther || coinType === suiType || statusOf(error) === 'RESOURCE_EXHAUSTED')
          return false
        const control = ask(owner, suiType)
        return await control.then(
          () => true,
          () => false,
        )
      }
      const work = async () => {
        for (let pair = left.pop(); pair; pair = left.pop()) {
          // Each of those is asked for alone afterwards (`readAgain`).
          if (doubtful.has(pair.coinType)) continue
          try {
            balances.set(pair.key, await readPair(pair))
          } catch (error) {
            // Anyone can publish a coin type: what nodes cannot answer of one must not keep others from being read.
            if (!(await isOfCoin(pair, error))) throw error
            const again = await readPair(pair).catch(() => limited.throwIfAborted())
            if (again) balances.set(pair.key, again)
            else doubtful.add(pair.coinType)
          }
        }
      }
      await Promise.all(Array.from({ length: atOnce }, work))
      return balances
    }
  }

/**
 * A checkpoint that the balances of a node hold for sure. They come behind the execution, up to a
 * minute; a stream shows a checkpoint only when they have it.
 */
async function findIndexed(node: SuiNode, limited: AbortSignal): Promise<number> {
  if (node.streamed !== undefined) return node.streamed
  return await within(callLimitMs, limited, async (cut) => {
    for await (const { sequenceNumber } of node.client.subscribe(cut)) return Number(sequenceNumber)
    throw new Error('the stream gave nothing')
  })
}

/** Sums of changes since the first checkpoint that was looked at. */
function createSums(nodes: SuiNodes, all: readonly Pair[]) {
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
    between: (key: string, from: number, to: number): bigint[] => {
      const begin = Math.max(from, first!)
      return Array.from({ length: to - begin + 1 }, (_, i) => at(key, begin + i))
    },
  }
}
