// Damages recorded blocks of the production network, and checks that every block can be stored and that no record
// of an undamaged transaction is lost. `--blocks 10000 --seed 1`.

import { Cell } from '@ton/core'
import type { ChainBlock, Movement, Tracked } from '../../src/chains/chain.ts'
import { createBlock } from '../../src/chains/ton/block.ts'
import { createDoubts } from '../../src/chains/ton/doubts.ts'
import type { RawTransaction } from '../../src/chains/ton/raw.ts'
import { createVerificationCounts } from '../../src/chains/verification.ts'
import { createRandom } from '../helpers/random.ts'
import { type RealBlock, readRealBlock, writeRaw } from '../helpers/ton-real-blocks.ts'
import { readNumbers } from './program.ts'

/** What a run came to. */
export type MutatedOutcome = {
  blocks: number
  transactions: number
  damaged: number
  /** Damaged transactions that are recorded as gaps, and those that can still be decoded. */
  undecoded: number
  decoded: number
  movements: number
}

type Random = () => number

const perBlock = 12
const native = {
  asset_type: 'ASSET_TYPE_T',
  contract_address: Buffer.alloc(0),
  token_id: 0n,
} as const
const id = { workchain: 0, shard: '-9223372036854775808', seqno: 7, root_hash: '', file_hash: '' }
// All accounts, as owners of coins and of tokens.
const everyone: Tracked = {
  accounts: { has: () => true, size: 1 },
  contracts: { has: () => false, size: 0 },
  tokenAccount: (account) => [
    {
      owner: Buffer.from(account),
      asset: { ...native, contract_address: Buffer.alloc(33, 1) },
    },
  ],
}

const blockOf = (raws: readonly RawTransaction[], { time }: RealBlock): ChainBlock => {
  let now = 0
  const doubts = createDoubts({ now: () => now })
  // As the tracker does: the block is fetched again until it can be stored.
  for (let attempt = 0; ; attempt++)
    try {
      const block = createBlock({
        header: { number: 7, hash: Buffer.alloc(32), parent_hash: Buffer.alloc(32), time },
        parts: [{ id, transactions: raws, accuse: () => {} }],
        tops: [],
        native,
        doubts,
        counts: createVerificationCounts('structural'),
      })
      block.decode(everyone)
      return block
    } catch (error) {
      if (attempt >= 3) throw error
      now += 15_000
    }
}

/** The records without their ordinals, which depend on the other transactions of the block. */
const keyed = (movements: readonly Movement[]): string[] =>
  movements.map(({ ordinal, ...movement }) =>
    JSON.stringify(movement, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
  )

type Transaction = RealBlock['transactions'][number]

const raws = new Map<Transaction, RawTransaction>()
const rawOf = (transaction: Transaction): RawTransaction => {
  const raw = raws.get(transaction) ?? writeRaw(transaction.account, transaction.cell)
  raws.set(transaction, raw)
  return raw
}

const records = new Map<Transaction, string[]>()
const recordsOf = (transaction: Transaction, block: RealBlock): string[] => {
  const known = records.get(transaction)
  const found = known ?? keyed(blockOf([rawOf(transaction)], block).decode(everyone).movements)
  records.set(transaction, found)
  return found
}

/** Flips bits, cuts bits off, swaps and drops references, in one cell of a tree. */
function damageCell(cell: Cell, random: Random): Cell {
  const pick = (most: number) => Math.floor(random() * most)
  if (cell.refs.length > 0 && random() < 0.7) {
    const at = pick(cell.refs.length)
    const refs = [...cell.refs]
    refs[at] = damageCell(refs[at]!, random)
    return new Cell({ bits: cell.bits, refs, exotic: cell.isExotic })
  }
  const kind = random()
  if (kind < 0.15 && cell.refs.length > 0)
    return new Cell({ bits: cell.bits, refs: cell.refs.slice(1) })
  if (kind < 0.3 && cell.refs.length < 4)
    return new Cell({ bits: cell.bits, refs: [...cell.refs, cell.refs[0] ?? Cell.EMPTY] })
  if (kind < 0.45 && cell.bits.length > 0)
    return new Cell({ bits: cell.bits.substring(0, pick(cell.bits.length)), refs: cell.refs })
  if (cell.bits.length === 0) return Cell.EMPTY
  const text = [...Array(cell.bits.length).keys()].map((at) => (cell.bits.at(at) ? 1 : 0))
  for (let flips = 1 + pick(8); flips > 0; flips--) text[pick(text.length)]! ^= 1
  const bytes = Buffer.alloc(Math.ceil(text.length / 8))
  for (const [at, bit] of text.entries()) bytes[at >> 3]! |= bit << (7 - (at & 7))
  const whole = new Cell({ bits: bitsOf(bytes, text.length), refs: cell.refs })
  return whole
}

const bitsOf = (bytes: Buffer, length: number) => {
  const { bits } = Cell.EMPTY
  const Bits = bits.constructor as new (data: Buffer, offset: number, length: number) => typeof bits
  return new Bits(bytes, 0, length)
}

/** A transaction as a chain, or a node, could damage it. */
function damage(transaction: Transaction, random: Random): RawTransaction {
  const { cell } = transaction
  const raw = rawOf(transaction)
  const kind = random()
  if (kind < 0.6) {
    const damaged = damageCell(cell, random)
    const hash = damaged.hash().toString('base64')
    const { lt } = raw.transaction_id
    return {
      ...raw,
      data: damaged.toBoc().toString('base64'),
      transaction_id: { lt, hash },
    }
  }
  const bytes = Buffer.from(raw.data, 'base64')
  const at = Math.floor(random() * bytes.length)
  if (kind < 0.75) bytes[at]! ^= 1 << Math.floor(random() * 8)
  const data = kind < 0.85 ? bytes.subarray(0, kind < 0.75 ? bytes.length : at) : bytes
  if (kind < 0.85) return { ...raw, data: data.toString('base64') }
  if (kind < 0.9) return { ...raw, account: 'x', address: { account_address: 7 } }
  if (kind < 0.95) return { ...raw, in_msg: { source: { '@type': 7 } }, out_msgs: null }
  return { ...raw, transaction_id: { ...raw.transaction_id, hash: 'AAAA' } }
}

/** Throws where a record could not be stored: the database would refuse the whole block. */
function assertStorable({ from, to, value, time, detail }: Movement, block: RealBlock): void {
  const text = JSON.stringify(detail)
  const isRight =
    [0, 33].includes(from.length) &&
    [0, 33].includes(to.length) &&
    value >= 0n &&
    value < 1n << 127n &&
    Math.abs((time ?? block.time) - block.time) <= 86_400_000 &&
    text.isWellFormed() &&
    !text.includes('\\u0000')
  if (!isRight) throw new Error(`cannot be stored: ${text}`)
}

/** Damages some transactions of blocks, and compares what is found with the undamaged blocks. */
export function runMutated({ blocks, seed }: { blocks: number; seed: number }): MutatedOutcome {
  const random = createRandom(seed)
  const real = ['mainnet_0_71398501_2026-05-13.boc', 'mainnet_0_54302208.boc'].map(readRealBlock)
  const outcome = { blocks: 0, transactions: 0, damaged: 0, undecoded: 0, decoded: 0, movements: 0 }
  for (; outcome.blocks < blocks; outcome.blocks++) {
    const block = real[random() < 0.7 ? 0 : 1]!
    const from = Math.floor(random() * Math.max(1, block.transactions.length - perBlock))
    const chosen = block.transactions.slice(from, from + perBlock)
    const isDamaged = chosen.map(() => random() < 0.2)
    const mixed = chosen.map((one, at) => (isDamaged[at] ? damage(one, random) : rawOf(one)))
    const wanted = chosen.flatMap((one, at) => (isDamaged[at] ? [] : recordsOf(one, block)))
    const stored = blockOf(mixed, block)
    const { movements, undecoded = [] } = stored.decode(everyone)
    const given = new Set(keyed(movements))
    const lost = wanted.filter((key) => !given.has(key))
    if (lost.length > 0) throw new Error(`seed ${seed}, block ${outcome.blocks}: lost ${lost[0]}`)
    for (const movement of movements) assertStorable(movement, block)
    const damaged = isDamaged.filter(Boolean).length
    const lacked = undecoded.length + Number(stored.lacks !== undefined)
    outcome.transactions += chosen.length
    outcome.damaged += damaged
    outcome.undecoded += lacked
    outcome.decoded += damaged - lacked
    outcome.movements += movements.length
  }
  return outcome
}

if (import.meta.main) {
  const started = performance.now()
  const outcome = runMutated(readNumbers({ blocks: 10_000, seed: 1 }))
  console.log(JSON.stringify({ ...outcome, ms: Math.round(performance.now() - started) }))
}
