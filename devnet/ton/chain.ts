import { Cell, loadMessage } from '@ton/core'
import { emptyState, viewAccount } from './account.ts'
import { type Block, type BlockId, digest, masterchain, type QueuedMessage } from './block.ts'
import type { Rules } from './executor.ts'
import { type Happened, produce, readQueued, reshard, type Top } from './producer.ts'
import { covers, depthOf, halvesOf, holds, wholeOf, wholeShard } from './shards.ts'
import type { Store } from './store.ts'

/** What can be chosen of a chain. */
export type TonChainOptions = {
  store: Store
  rules: Rules
  seed: number
  /** Unix seconds of a block; without it the wall clock, which never goes back here. */
  timeOf?(seqno: number): number
  /** How many blocks a shard makes per masterchain block; 0 makes it skip. */
  roundsOf?(seqno: number, shard: bigint): number
  /** How many masterchain blocks are kept. */
  retention: number
  genesis: ReadonlyMap<string, string>
}

/** A message that the chain does not take. */
export class RefusedMessageError extends Error {
  override name = 'RefusedMessageError'
}

/** The chain of the development node. */
export type TonChain = ReturnType<typeof createTonChain>

/** The time of the first block: always the same, so that equal seeds give equal chains. */
export const genesisTime = 1_750_000_000

/** Opens a chain from what its store has, or begins it. */
export function createTonChain(options: TonChainOptions) {
  const { store, rules, seed, timeOf, roundsOf = () => 1, retention, genesis } = options
  const zero = (workchain: number): BlockId => {
    const root_hash = digest(`zero state ${seed} ${workchain}`, ...[...genesis].flat())
    return { workchain, shard: wholeShard, seqno: 0, root_hash, file_hash: digest(root_hash) }
  }
  const known = store.meta('seed')
  if (known === undefined) store.genesis(genesis, { seed: String(seed) })
  else if (known !== String(seed))
    throw new Error(`the folder has a chain of the seed ${known}, not of ${seed}`)

  let head: Block | undefined = store.head()
  let lt = BigInt(store.meta('lt') ?? 0)
  let queue: QueuedMessage[] = store.messages().map(readQueued)
  let tops: Top[] = head
    ? head.shards.map((id) => ({ shard: id.shard, prev: [id] }))
    : [{ shard: wholeShard, prev: [zero(0)] }]
  let wanted: bigint[] | undefined
  const listeners = new Set<(block: Block, happened: readonly Happened[]) => void>()

  let last: Promise<unknown> = Promise.resolve()
  /** One thing after another: a block is made from what was there when it began. */
  const inTurn = <result>(work: () => Promise<result>): Promise<result> => {
    const done = last.then(work)
    last = done.catch(() => {})
    return done
  }

  const timeNow = (seqno: number): number => {
    if (seqno === 1) return timeOf?.(seqno) ?? genesisTime
    return Math.max(timeOf?.(seqno) ?? Math.floor(Date.now() / 1000), head?.utime ?? 0)
  }
  const stateOf = (account: string, mc_seqno = head?.id.seqno ?? 0): string | undefined =>
    store.state(account, mc_seqno)

  const seal = async (): Promise<Block> => {
    const seqno = (head?.id.seqno ?? 0) + 1
    const before = new Set(tops.map(({ shard }) => shard))
    const next = wanted ? reshard(tops, wanted) : tops
    const rounds = next.map(({ shard }) =>
      // A shard that is new has to show itself.
      before.has(shard) && seqno > 1 ? roundsOf(seqno, shard) : Math.max(1, roundsOf(seqno, shard)),
    )
    const previous = head?.id ?? zero(masterchain)
    const utime = timeNow(seqno)
    const made = await produce(rules, {
      seqno,
      utime,
      lt,
      previous,
      tops: next,
      rounds,
      queue,
      stateOf,
    })
    const fresh = made.waiting.filter(({ id }) => id === 0)
    const ids = store.commit({
      blocks: made.blocks,
      states: made.states,
      taken: made.taken,
      waiting: fresh,
      meta: { lt: String(made.lt) },
    })
    for (const [index, message] of fresh.entries()) message.id = ids[index]!
    queue = made.waiting
    ;[lt, tops, wanted] = [made.lt, made.tops, undefined]
    const { block } = made.blocks.at(-1)!
    head = block
    if (seqno % 256 === 0 && seqno > retention) store.prune(seqno - retention)
    for (const listener of listeners) listener(block, made.happened)
    return block
  }

  const enqueue = (boc: string): QueuedMessage => {
    const message = readQueued({ id: store.addMessage(boc, true), boc, external: true })
    queue.push(message)
    return message
  }

  const setShards = (shards: readonly bigint[]): void => {
    wanted = [...shards].sort((a, b) => (a < b ? -1 : 1))
  }
  const shards = (): bigint[] => wanted ?? tops.map(({ shard }) => shard)

  return {
    zero,
    started: (): boolean => head !== undefined,
    head: (): Block => head!,
    /** Makes one masterchain block. */
    seal: (): Promise<Block> => inTurn(seal),
    /** Takes an external message as a node does: if it could be executed now. */
    send: (boc: Buffer): Promise<Buffer> =>
      inTurn(async () => {
        const [cell] = Cell.fromBoc(boc)
        if (!cell) throw new RefusedMessageError('no cell')
        const { info } = loadMessage(cell.beginParse())
        if (info.type !== 'external-in') throw new RefusedMessageError('not an external message')
        const state = stateOf(info.dest.toRawString()) ?? emptyState()
        const moment = {
          lt: lt + 1_000_000n,
          utime: timeNow(head!.id.seqno + 1),
          random: Buffer.alloc(32),
        }
        const tried = await rules.run(state, cell, moment)
        if (!tried.ok)
          throw new RefusedMessageError(
            `cannot apply external message to current state : ${tried.reason}`,
          )
        enqueue(boc.toString('base64'))
        return cell.hash()
      }),
    /** Puts an order in without trying it: it may depend on one that waits. */
    push: (make: (queued: readonly QueuedMessage[]) => Buffer): Promise<Buffer> =>
      inTurn(async () => enqueue(make(queue).toString('base64')).cell.hash()),
    onBlock: (listener: (block: Block, happened: readonly Happened[]) => void): (() => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    /** An account as of a masterchain block, the newest one if none is named. */
    account: (account: string, mc_seqno?: number) =>
      viewAccount(stateOf(account, mc_seqno) ?? emptyState()),
    rules,
    store,
    shards,
    /** Splits every shard, or merges, until each has this depth; one step per block is made. */
    setDepth: (depth: number): void => {
      const now = shards()
      if (now.every((shard) => depthOf(shard) < depth)) setShards(now.flatMap(halvesOf))
      else if (now.some((shard) => depthOf(shard) > depth)) {
        const deepest = Math.max(...now.map(depthOf))
        setShards([
          ...new Set(now.map((shard) => (depthOf(shard) === deepest ? wholeOf(shard) : shard))),
        ])
      }
    },
    /** Splits one shard in the next block. */
    split: (shard: bigint): void => {
      if (tops.some((top) => top.shard === shard))
        setShards(tops.flatMap((top) => (top.shard === shard ? halvesOf(shard) : [top.shard])))
    },
    /** Merges the two halves of a shard in the next block, if both are there. */
    merge: (shard: bigint): void => {
      const halves = halvesOf(shard)
      if (halves.every((half) => tops.some((top) => top.shard === half)))
        setShards([...tops.map((top) => top.shard).filter((top) => !halves.includes(top)), shard])
    },
    /** The shard that an account belongs to. */
    shardOf: (prefix: bigint): bigint =>
      shards().find((shard) => holds(shard, prefix)) ?? wholeShard,
    /** Whether a shard is one of the present ones or covers one of them. */
    hasShard: (shard: bigint): boolean => shards().some((one) => covers(shard, one)),
    /** Waits for what is under way. */
    idle: (): Promise<void> => inTurn(async () => {}),
  }
}
