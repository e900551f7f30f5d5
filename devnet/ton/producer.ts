import { Address, Cell, loadMessage, loadTransaction } from '@ton/core'
import { emptyState } from './account.ts'
import {
  type Block,
  type BlockId,
  digest,
  masterchain,
  type QueuedMessage,
  type StoredTransaction,
} from './block.ts'
import type { Moment, Rules } from './executor.ts'
import { messageCellsOf } from './message-cells.ts'
import { holds, overlap, wholeShard } from './shards.ts'
import { transactionV2 } from './wire-v2.ts'

/** A transaction as those hear of it who wait for one. */
export type Happened = { hash: Buffer; in_hash: Buffer | null; out_hashes: Buffer[] }

/** A shard, and the blocks that its next one follows: two after a merge. */
export type Top = { shard: bigint; prev: BlockId[] }

/** What a masterchain block is made from. */
export type Draft = {
  seqno: number
  utime: number
  /** The first logical time that is free. */
  lt: bigint
  previous: BlockId
  tops: readonly Top[]
  /** How many blocks each shard makes. */
  rounds: readonly number[]
  queue: readonly QueuedMessage[]
  /** The present state of an account. */
  stateOf(account: string): string | undefined
}

/** A masterchain block with everything that it commits. */
export type Produced = {
  blocks: { block: Block; transactions: StoredTransaction[] }[]
  tops: Top[]
  states: Map<string, string>
  taken: number[]
  waiting: QueuedMessage[]
  happened: Happened[]
  lt: bigint
}

const ltStep = 1_000_000n

/** Where a message goes. */
export const readQueued = (message: {
  id: number
  boc: string
  external: boolean
}): QueuedMessage => placeOf(Cell.fromBase64(message.boc), message)

const placeOf = (
  cell: Cell,
  { id, boc, external }: { id: number; boc?: string; external: boolean },
): QueuedMessage => {
  const { dest } = loadMessage(cell.beginParse()).info
  if (!(dest instanceof Address)) throw new Error('a message without a destination')
  return {
    id,
    cell,
    boc: boc ?? cell.toBoc().toString('base64'),
    external,
    workchain: dest.workChain,
    account: dest.toRawString(),
    prefix: dest.hash.readBigUInt64BE(0),
  }
}

// An internal message begins with a zero bit; what leaves the chain goes nowhere.
const isInternal = (message: Cell): boolean => !message.beginParse().loadBit()

/**
 * Makes one masterchain block and the shard blocks that it commits. A message that a block sends
 * arrives in a later one, so that what follows from one message goes through blocks and shards as on
 * the network.
 */
export async function produce(rules: Rules, draft: Draft): Promise<Produced> {
  const { seqno, utime, tops, rounds, stateOf } = draft
  const states = new Map<string, string>()
  const blocks: Produced['blocks'] = []
  const happened: Happened[] = []
  const taken: number[] = []
  let lt = draft.lt
  let waiting: QueuedMessage[] = [...draft.queue]

  const takeWhere = (belongs: (message: QueuedMessage) => boolean): QueuedMessage[] => {
    const due = waiting.filter(belongs)
    waiting = waiting.filter((message) => !belongs(message))
    for (const { id } of due) if (id > 0) taken.push(id)
    return due
  }

  const make = async (
    place: { workchain: number; shard: bigint; seqno: number; prev: BlockId[]; shards: BlockId[] },
    due: readonly QueuedMessage[],
  ): Promise<{ id: BlockId; sent: QueuedMessage[] }> => {
    const start_lt = (lt / ltStep + 1n) * ltStep
    lt = start_lt + 1n
    const sent: QueuedMessage[] = []
    const transactions: StoredTransaction[] = []
    // As on the network, the accounts of one block have clocks of their own.
    const clocks = new Map<string, bigint>()
    const random = digest(`random ${place.workchain} ${place.shard} ${place.seqno}`)
    for (const { cell, account, external } of due) {
      const state = states.get(account) ?? stateOf(account) ?? emptyState()
      const moment: Moment = { lt: clocks.get(account) ?? start_lt + 1n, utime, random }
      const executed = await rules.run(state, cell, moment)
      if (!executed.ok) {
        // The state may have changed since it was taken; the network drops such a message too.
        if (external) continue
        throw new Error(`a message to ${account} cannot be executed: ${executed.reason}`)
      }
      states.set(account, executed.state_boc)
      const { transaction: root, transaction_boc: boc } = executed
      const transaction = loadTransaction(root.beginParse())
      const end = transaction.lt + BigInt(transaction.outMessagesCount) + 1n
      clocks.set(account, end)
      if (end > lt) lt = end
      const messages = messageCellsOf(root)
      transactions.push({
        account,
        lt: transaction.lt,
        hash: root.hash(),
        in_hash: cell.hash(),
        wire: transactionV2(Address.parseRaw(account), { transaction, cell: root, boc, messages }),
      })
      const out_hashes = messages.out.map((message) => message.hash())
      happened.push({ hash: root.hash(), in_hash: cell.hash(), out_hashes })
      for (const message of messages.out)
        if (isInternal(message)) sent.push(placeOf(message, { id: 0, external: false }))
    }
    transactions.sort((a, b) =>
      a.account < b.account ? -1 : a.account > b.account ? 1 : Number(a.lt - b.lt),
    )
    const root_hash = digest(
      `${place.workchain} ${place.shard} ${place.seqno} ${utime} ${start_lt}`,
      ...place.prev.map((id) => id.root_hash),
      ...place.shards.map((id) => id.root_hash),
      ...transactions.map(({ hash }) => hash),
    )
    const { workchain, shard, prev, shards } = place
    const id = { workchain, shard, seqno: place.seqno, root_hash, file_hash: digest(root_hash) }
    const block: Block = {
      id,
      mc_seqno: seqno,
      prev,
      shards,
      utime,
      start_lt,
      end_lt: lt,
      after_split: prev.length === 1 && prev[0]!.shard !== shard,
      after_merge: prev.length === 2,
      tx_count: transactions.length,
    }
    blocks.push({ block, transactions })
    return { id, sent }
  }

  let heads: Top[] = tops.map((top) => ({ ...top }))
  for (let round = 0; round < Math.max(0, ...rounds); round++) {
    const sent: QueuedMessage[] = []
    const next: Top[] = []
    for (const [index, { shard, prev }] of heads.entries()) {
      if (round >= rounds[index]!) {
        next.push({ shard, prev })
        continue
      }
      const due = takeWhere(({ workchain, prefix }) => workchain === 0 && holds(shard, prefix))
      const number = Math.max(...prev.map((id) => id.seqno)) + 1
      const made = await make({ workchain: 0, shard, seqno: number, prev, shards: [] }, due)
      sent.push(...made.sent)
      next.push({ shard, prev: [made.id] })
    }
    heads = next
    waiting.push(...sent)
  }
  const due = takeWhere(({ workchain }) => workchain === masterchain)
  const own = { workchain: masterchain, shard: wholeShard, seqno, prev: [draft.previous] }
  const { sent } = await make({ ...own, shards: heads.flatMap(({ prev }) => prev) }, due)
  waiting.push(...sent)
  return { blocks, tops: heads, states, taken, waiting, happened, lt }
}

/** The tops of another set of shards: what each one follows. */
export const reshard = (tops: readonly Top[], shards: readonly bigint[]): Top[] =>
  shards.map((shard) => ({
    shard,
    prev: tops.filter((top) => overlap(top.shard, shard)).flatMap(({ prev }) => prev),
  }))
