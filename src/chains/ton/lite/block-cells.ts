// Reads blocks, proofs of blocks and states from their cells (block.tlb of ton-blockchain/ton).

import {
  Cell,
  CellType,
  Dictionary,
  type DictionaryValue,
  loadCommonMessageInfo,
  type Slice,
} from '@ton/core'
import { NodeFault } from '../../nodes/fault.ts'
import { readLabel } from '../dictionary.ts'
import type { RawTransaction } from '../raw.ts'
import type { LiteBlockId } from './messages.ts'

/** What the header of a block says. */
export type BlockInfo = {
  global_id: number
  workchain: number
  shard: bigint
  seqno: number
  isKey: boolean
  /** Unix seconds. */
  time: number
  prevKeySeqno: number
  prev: LiteBlockId[]
}

// A shard is a prefix of account hashes in 64 bits: the prefix, then a one, then zeros. The lowest bit that is set
// says how long the prefix is.
const mostBits = 64n
const mask = (1n << mostBits) - 1n
const lowBit = (shard: bigint): bigint => shard & -shard & mask
const parentOf = (shard: bigint): bigint => {
  const low = lowBit(shard)
  return (shard - low) | (low << 1n)
}
/** The two halves of a shard. */
export const childrenOf = (shard: bigint): [bigint, bigint] => {
  const half = lowBit(shard) >> 1n
  return [shard - half, shard + half]
}
/** Whether an account belongs to a shard. */
export const holds = (shard: bigint, hash: Buffer): boolean =>
  ((shard ^ hash.readBigUInt64BE(0)) & ~((lowBit(shard) << 1n) - 1n) & mask) === 0n

/** Throws NodeFault where cells are not what they should be. */
export const reading = <value>(what: string, read: () => value): value => {
  try {
    return read()
  } catch (error) {
    if (error instanceof NodeFault) throw error
    throw new NodeFault('invalid', `${what} cannot be read`)
  }
}

// Cells have no names: the tag of a constructor is the only sign of reading the right thing.
const expectTag = (slice: Slice, bits: number, tag: number): void => {
  if (slice.loadUint(bits) !== tag) throw new Error('another constructor')
}

/** The cell whose hash a Merkle proof has; it may have pruned branches. */
export function provenRoot(proof: Cell, root_hash: Buffer): Cell {
  const root = proof.refs[0]
  // The library has compared the hash in the proof with that of the cell.
  if (proof.type !== CellType.MerkleProof || !root?.hash(0).equals(root_hash))
    throw new Error('a proof of something else')
  return root
}

/** Reads the header of a block. */
export function readInfo(block: Cell): BlockInfo {
  const head = block.beginParse()
  expectTag(head, 32, 0x11ef55aa)
  const global_id = head.loadInt(32)
  const info = head.loadRef().beginParse()
  expectTag(info, 32, 0x9bc7a987)
  info.skip(32)
  // The flags are in the order of `block_info` in block.tlb; those that are not needed are skipped.
  const [isNotMaster, isMerged] = [info.loadBit(), info.loadBit()]
  info.skip(1)
  const isSplit = info.loadBit()
  info.skip(2)
  const isKey = info.loadBit()
  info.skip(1 + 8)
  const seqno = info.loadUint(32)
  info.skip(32)
  expectTag(info, 2, 0)
  const depth = info.loadUint(6)
  const workchain = info.loadInt(32)
  const prefix = info.loadUintBig(64)
  const shard = (prefix & ~((1n << (64n - BigInt(depth))) - 1n)) | (1n << (63n - BigInt(depth)))
  const time = info.loadUint(32)
  // Logical times, the hash of the validators, their catchain and the last masterchain block: not needed here.
  info.skip(64 + 64 + 32 + 32 + 32)
  const prevKeySeqno = info.loadUint(32)
  if (isNotMaster) info.loadRef()
  const refs = info.loadRef().beginParse()
  const [first, second] = isMerged ? childrenOf(shard) : []
  const prev =
    first !== undefined && second !== undefined
      ? [
          readRef(refs.loadRef().beginParse(), workchain, first),
          readRef(refs.loadRef().beginParse(), workchain, second),
        ]
      : [readRef(refs, workchain, isSplit ? parentOf(shard) : shard)]
  return { global_id, workchain, shard, seqno, isKey, time, prevKeySeqno, prev }
}

const readRef = (slice: Slice, workchain: number, shard: bigint): LiteBlockId => {
  // `end_lt` of `ext_blk_ref` comes first.
  slice.skip(64)
  return {
    workchain,
    shard,
    seqno: slice.loadUint(32),
    root_hash: slice.loadBuffer(32),
    file_hash: slice.loadBuffer(32),
  }
}

/** What only blocks of the masterchain have. */
const masterExtra = (block: Cell): Slice => {
  const extra = block.refs[3]!
  const slice = extra.beginParse()
  expectTag(slice, 32, 0x4a33f6fd)
  const custom = extra.refs[3]!.beginParse()
  expectTag(custom, 16, 0xcca5)
  return custom
}

/** The newest block of every shard, in a masterchain block. */
export function readShardTops(block: Cell): LiteBlockId[] {
  const slice = masterExtra(block)
  slice.skip(1)
  const trees = slice.loadDict(Dictionary.Keys.Int(32), Dictionary.Values.Cell())
  const tops: LiteBlockId[] = []
  const walk = (tree: Slice, workchain: number, shard: bigint): void => {
    if (tree.loadBit()) {
      const [left, right] = childrenOf(shard)
      walk(tree.loadRef().beginParse(), workchain, left)
      walk(tree.loadRef().beginParse(), workchain, right)
      return
    }
    // Both versions of the description of a shard begin with the same fields.
    const tag = tree.loadUint(4)
    if (tag !== 0xa && tag !== 0xb) throw new Error('another constructor')
    const seqno = tree.loadUint(32)
    // `reg_mc_seqno`, `start_lt` and `end_lt`.
    tree.skip(32 + 64 + 64)
    const [root_hash, file_hash] = [tree.loadBuffer(32), tree.loadBuffer(32)]
    tops.push({ workchain, shard, seqno, root_hash, file_hash })
  }
  for (const [workchain, tree] of trees) walk(tree.beginParse(), workchain, 1n << 63n)
  return tops
}

/** A parameter of the configuration in a key block. */
export function readConfigParam(block: Cell, param: number): Cell {
  const slice = masterExtra(block)
  if (!slice.loadBit()) throw new Error('not a key block')
  const extra = block.refs[3]!.refs[3]!
  // The configuration is the last reference of it.
  const config = Dictionary.loadDirect(
    Dictionary.Keys.Int(32),
    Dictionary.Values.Cell(),
    extra.refs.at(-1)!.beginParse(),
  )
  return config.get(param) ?? missing()
}
const missing = (): never => {
  throw new Error('not there')
}

/** The value of a dictionary whose edges have sums of currencies. */
const augmented = <value>(parse: (slice: Slice) => value): DictionaryValue<value> => ({
  serialize: missing,
  parse: (slice) => {
    slice.loadCoins()
    slice.loadMaybeRef()
    return parse(slice)
  },
})

/** The transactions of a block, in the form in which API v2 gives them. */
export function readTransactions(block: Cell, workchain: number): RawTransaction[] {
  const accounts = block.refs[3]!.refs[2]!.beginParse()
  if (!accounts.loadBit()) return []
  const blocks = Dictionary.loadDirect(
    Dictionary.Keys.Buffer(32),
    augmented((slice) => {
      // The tag and the address of `acc_trans`.
      slice.skip(4 + 256)
      const transactions = augmented((inner) => inner.loadRef())
      return Dictionary.loadDirect(Dictionary.Keys.BigUint(64), transactions, slice).values()
    }),
    accounts.loadRef().beginParse(),
  )
  return [...blocks].flatMap(([account, cells]) =>
    cells.map((cell) => writeRaw(`${workchain}:${account.toString('hex').toUpperCase()}`, cell)),
  )
}

function writeRaw(account: string, cell: Cell): RawTransaction {
  const slice = cell.beginParse()
  // The tag and the account; the logical time follows.
  slice.skip(4 + 256)
  const lt = slice.loadUintBig(64).toString()
  return {
    account,
    data: cell.toBoc().toString('base64'),
    transaction_id: { lt, hash: cell.hash().toString('base64') },
    ...partiesOf(cell),
  }
}

/** The parties of its messages; none where those cannot be read: the transaction is decoded later. */
function partiesOf(cell: Cell): Pick<RawTransaction, 'in_msg' | 'out_msgs'> {
  try {
    const slice = cell.refs[0]!.beginParse()
    const received = slice.loadMaybeRef()
    const sent = slice.loadDict(Dictionary.Keys.Uint(15), Dictionary.Values.Cell()).values()
    const show = (message: Cell) => {
      const info = loadCommonMessageInfo(message.beginParse())
      return {
        source: info.type === 'external-in' ? '' : info.src.toRawString(),
        destination: info.type === 'external-out' ? '' : info.dest.toRawString(),
      }
    }
    return { ...(received && { in_msg: show(received) }), out_msgs: sent.map(show) }
  } catch {
    return { out_msgs: [] }
  }
}

/**
 * The balance of an account by a proof: the header of a block commits to the state after it, which holds the balances
 * of all accounts. 0 where the state has no such account.
 */
export function readProvenBalance(proof: Buffer, block: LiteBlockId, account: Buffer): bigint {
  const cells = Cell.fromBoc(proof)
  // The order of the two is not fixed.
  const find = (root_hash: Buffer): Cell => {
    const found = cells.find(({ refs }) => refs[0]?.hash(0).equals(root_hash))
    return provenRoot(found ?? missing(), root_hash)
  }
  // Proofs are of two trees: the header of the block, and the state that it commits to.
  const update = find(block.root_hash).refs[2]!
  if (update.type !== CellType.MerkleUpdate) throw new Error('no change of the state')
  const after = update.beginParse(true)
  after.skip(8 + 256)
  const state = find(after.loadBuffer(32))
  expectTag(state.beginParse(), 32, 0x9023afe2)
  const accounts = state.refs[1]!.beginParse()
  if (!accounts.loadBit()) return 0n
  const found = Dictionary.loadDirect(
    Dictionary.Keys.Buffer(32),
    { serialize: missing, parse: readBalance },
    accounts.loadRef().beginParse(),
  )
  const balance = found.get(account)
  // A node could hide an account by pruning the path to it; absence has to be proved as well.
  if (balance === undefined) assertAbsent(state.refs[1]!.refs[0]!, account)
  return balance ?? 0n
}

/** Depth and balance stand on every edge, on the last one those of the account. */
const readBalance = (slice: Slice): bigint => {
  slice.skip(5)
  return slice.loadCoins()
}

/** That the path to a key ends in cells that are there, and not in a pruned one. */
function assertAbsent(root: Cell, key: Buffer): void {
  const bits = [...key].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  let at = 0
  for (let cell = root; ; ) {
    if (cell.isExotic) throw new Error('the proof ends before the account')
    const slice = cell.beginParse()
    const label = readLabel(slice, 256 - at)
    if (!bits.startsWith(label, at)) return
    at += label.length
    if (at === 256) throw new Error('the account is there')
    cell = cell.refs[bits[at++] === '1' ? 1 : 0]!
  }
}
