// The chain as lite servers show it: whole blocks in cells, signed by validators that change with every key block. Only
// the parts of a block that say what is in it and where it stands are real; sums on the edges of dictionaries are left out.
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { beginCell, Cell, convertToMerkleProof, Dictionary, type Slice } from '@ton/core'
import { viewAccount } from './account.ts'
import { type Block, type BlockId, masterchain } from './block.ts'
import type { TonChain } from './chain.ts'
import { tagged, tlBytes, u16, writeId, writeRoots } from './lite-wire.ts'
import { depthOf, halvesOf, holds, wholeShard } from './shards.ts'

/** A block with its bytes, and the state after it. */
export type LiteBlock = { id: BlockId; cell: Cell; boc: Buffer; state: Cell; prevKey: number }

const empty = beginCell().endCell()
const sha256 = (...parts: (Buffer | string)[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
const exotic = (bytes: Buffer, refs: Cell[] = []): Cell =>
  new Cell({
    exotic: true,
    bits: beginCell().storeBuffer(bytes).endCell().bits,
    refs,
  })
const pruned = (cell: Cell): Cell =>
  exotic(Buffer.concat([Buffer.of(1, 1), cell.hash(0), u16(cell.depth(0))]))

/** From one state to another, without their cells. */
const updateOf = (before: Cell, after: Cell): Cell =>
  exotic(
    Buffer.concat([
      Buffer.of(4),
      before.hash(0),
      after.hash(0),
      u16(before.depth(0)),
      u16(after.depth(0)),
    ]),
    [pruned(before), pruned(after)],
  )

const validators = 4
const mostBalances = 10_000
const seedOf = (set: number, index: number): Buffer => sha256(`validator ${index} of set ${set}`)
const keyPrefix = Buffer.from('302e020100300506032b657004220420', 'hex')
/** The private key of a seed. */
export const keyOf = (seed: Buffer) =>
  createPrivateKey({ key: Buffer.concat([keyPrefix, seed]), format: 'der', type: 'pkcs8' })
/** The public key of a seed. */
export const publicOf = (seed: Buffer): Buffer =>
  createPublicKey(keyOf(seed)).export({ format: 'der', type: 'spki' }).subarray(-32)

const onlyWritten = (_: Slice): never => {
  throw new Error('is only written')
}

/** Reads the chain block by block; every `keyEvery`-th masterchain block is a key block. */
export function createLiteBlocks(
  chain: TonChain,
  { globalId, keyEvery }: { globalId: number; keyEvery: number },
) {
  const blocks = new Map<string, LiteBlock>()
  let built = 0
  const nameOf = (id: Pick<BlockId, 'workchain' | 'shard' | 'seqno'>): string =>
    `${id.workchain} ${id.shard} ${id.seqno}`
  const isKey = (seqno: number): boolean => seqno % keyEvery === 1 || keyEvery === 1
  /** Which set signs a block: the one that the key block before it names. */
  const setOf = (prevKey: number): number => Math.ceil(prevKey / keyEvery)
  const prevKeyOf = (seqno: number): number => {
    for (let before = seqno - 1; before > 0; before--) if (isKey(before)) return before
    return 0
  }
  const idOf = (id: BlockId): BlockId => blocks.get(nameOf(id))?.id ?? id

  const states = new Map<string, { name: string; state: Cell }>()
  const balances = new Map<string, bigint>()
  /** The balance in a state; the same states come again with every block. */
  const balanceIn = (boc: string): bigint => {
    const known = balances.get(boc) ?? viewAccount(boc).balance
    if (balances.size > mostBalances) balances.clear()
    balances.set(boc, known)
    return known
  }
  const stateOf = ({ id: { workchain, shard }, mc_seqno }: Block): Cell => {
    const accounts = Dictionary.empty(Dictionary.Keys.Buffer(32), {
      serialize: (balance: bigint, builder) =>
        void builder.storeUint(0, 5).storeCoins(balance).storeBit(false),
      parse: onlyWritten,
    })
    for (const name of chain.store.accounts()) {
      const [of, hex] = name.split(':') as [string, string]
      const hash = Buffer.from(hex, 'hex')
      if (Number(of) !== workchain || !holds(shard, hash.readBigUInt64BE(0))) continue
      const boc = chain.store.state(name, mc_seqno)
      if (boc !== undefined) accounts.set(hash, balanceIn(boc))
    }
    // Most blocks change nothing.
    const name = [...accounts].map(([hash, balance]) => `${hash.toString('hex')} ${balance}`).join()
    const same = states.get(`${workchain} ${shard}`)
    if (same?.name === name) return same.state
    const cell = beginCell().storeDict(accounts).storeUint(0, 5).storeCoins(0).storeBit(false)
    const state = beginCell()
      .storeUint(0x9023afe2, 32)
      .storeRef(empty)
      .storeRef(cell.endCell())
      .storeRef(empty)
      .endCell()
    states.set(`${workchain} ${shard}`, { name, state })
    return state
  }

  const infoOf = (block: Block, prevKey: number): Cell => {
    const { id, prev, after_merge, after_split, utime, start_lt, end_lt } = block
    const isMaster = id.workchain === masterchain
    const mark = id.shard & -id.shard
    const info = beginCell()
      .storeUint(0x9bc7a987, 32)
      .storeUint(0, 32)
      .storeBit(!isMaster)
      .storeBit(after_merge)
      .storeBit(false)
      .storeBit(after_split)
      .storeUint(0, 2)
      .storeBit(isMaster && isKey(id.seqno))
      .storeBit(false)
      .storeUint(0, 8)
      .storeUint(id.seqno, 32)
      .storeUint(0, 32)
      .storeUint(0, 2)
      .storeUint(depthOf(id.shard), 6)
      .storeInt(id.workchain, 32)
      .storeUint(id.shard ^ mark, 64)
      .storeUint(utime, 32)
      .storeUint(start_lt, 64)
      .storeUint(end_lt, 64)
      .storeUint(0, 96)
      .storeUint(prevKey, 32)
    const refs = prev.map((one) => {
      const { seqno, root_hash, file_hash } = idOf(one)
      return beginCell()
        .storeUint(0, 64)
        .storeUint(seqno, 32)
        .storeBuffer(root_hash)
        .storeBuffer(file_hash)
        .endCell()
    })
    if (!isMaster) info.storeRef(empty)
    return info
      .storeRef(
        refs.length === 1 ? refs[0]! : beginCell().storeRef(refs[0]!).storeRef(refs[1]!).endCell(),
      )
      .endCell()
  }

  const accountsOf = (id: BlockId): Cell => {
    const byAccount = Map.groupBy(
      chain.store
        .transactionsOf(id)
        .map(({ wire }) => JSON.parse(wire) as { account: string; data: string }),
      ({ account }) => account.split(':')[1]!.toLowerCase(),
    )
    const transactions = {
      serialize: (cell: Cell, builder: ReturnType<typeof beginCell>) =>
        void builder.storeCoins(0).storeBit(false).storeRef(cell),
      parse: onlyWritten,
    }
    const dict = Dictionary.empty(Dictionary.Keys.Buffer(32), {
      serialize: ([account, cells]: [string, Cell[]], builder) => {
        builder
          .storeCoins(0)
          .storeBit(false)
          .storeUint(5, 4)
          .storeBuffer(Buffer.from(account, 'hex'))
        const inner = Dictionary.empty(Dictionary.Keys.BigUint(64), transactions)
        for (const cell of cells) {
          const slice = cell.beginParse()
          slice.skip(4 + 256)
          inner.set(slice.loadUintBig(64), cell)
        }
        inner.storeDirect(builder)
        builder.storeRef(empty)
      },
      parse: onlyWritten,
    })
    for (const [account, all] of byAccount)
      dict.set(Buffer.from(account, 'hex'), [account, all.map(({ data }) => Cell.fromBase64(data))])
    return beginCell().storeDict(dict).storeCoins(0).storeBit(false).endCell()
  }

  /** The newest blocks of the shards, as a tree of their splits. */
  const treeOf = (tops: readonly BlockId[], shard: bigint): Cell => {
    const top = tops.find((one) => one.shard === shard)
    if (top) {
      const { seqno, root_hash, file_hash } = idOf(top)
      return beginCell()
        .storeBit(false)
        .storeUint(0xb, 4)
        .storeUint(seqno, 32)
        .storeUint(0, 32 + 64 + 64)
        .storeBuffer(root_hash)
        .storeBuffer(file_hash)
        .endCell()
    }
    const [left, right] = halvesOf(shard)
    return beginCell()
      .storeBit(true)
      .storeRef(treeOf(tops, left))
      .storeRef(treeOf(tops, right))
      .endCell()
  }
  const configOf = (set: number): Cell => {
    const list = Dictionary.empty(Dictionary.Keys.Uint(16), {
      serialize: (key: Buffer, builder) =>
        void builder.storeUint(0x53, 8).storeUint(0x8e81278a, 32).storeBuffer(key).storeUint(1, 64),
      parse: onlyWritten,
    })
    for (let index = 0; index < validators; index++) list.set(index, publicOf(seedOf(set, index)))
    const param = beginCell()
      .storeUint(0x12, 8)
      .storeUint(0, 64)
      .storeUint(validators, 16)
      .storeUint(validators, 16)
      .storeUint(validators, 64)
      .storeDict(list)
      .endCell()
    const config = Dictionary.empty(Dictionary.Keys.Int(32), Dictionary.Values.Cell())
    config.set(34, param)
    const cell = beginCell()
    config.storeDirect(cell)
    return cell.endCell()
  }
  const customOf = ({ id, shards }: Block): Cell => {
    const trees = Dictionary.empty(Dictionary.Keys.Int(32), Dictionary.Values.Cell())
    trees.set(0, treeOf(shards, wholeShard))
    const custom = beginCell()
      .storeUint(0xcca5, 16)
      .storeBit(isKey(id.seqno))
      .storeDict(trees)
      .storeBit(false)
      .storeUint(0, 10)
      .storeRef(empty)
    if (!isKey(id.seqno)) return custom.endCell()
    return custom
      .storeUint(0, 256)
      .storeRef(configOf(setOf(id.seqno)))
      .endCell()
  }

  const build = (block: Block): void => {
    const { id, prev } = block
    const isMaster = id.workchain === masterchain
    const prevKey = prevKeyOf(isMaster ? id.seqno : block.mc_seqno)
    const state = stateOf(block)
    const extra = beginCell()
      .storeUint(0x4a33f6fd, 32)
      .storeRef(empty)
      .storeRef(empty)
      .storeRef(accountsOf(id))
      .storeUint(0, 256)
      .storeUint(0, 256)
    const cell = beginCell()
      .storeUint(0x11ef55aa, 32)
      .storeInt(globalId, 32)
      .storeRef(infoOf(block, prevKey))
      .storeRef(empty)
      .storeRef(updateOf(blocks.get(nameOf(prev[0]!))?.state ?? empty, state))
      .storeRef(
        (isMaster
          ? extra.storeBit(true).storeRef(customOf(block))
          : extra.storeBit(false)
        ).endCell(),
      )
      .endCell()
    const boc = cell.toBoc()
    const named = { ...id, root_hash: cell.hash(), file_hash: sha256(boc) }
    blocks.set(nameOf(id), { id: named, cell, boc, state, prevKey })
  }
  const catchUp = (): void => {
    for (; built < chain.head().id.seqno; built++) {
      const made = chain.store.blocksOf(built + 1)
      const shards = made.filter(({ id }) => id.workchain !== masterchain)
      for (const block of shards.toSorted((a, b) => a.id.seqno - b.id.seqno)) build(block)
      for (const block of made) if (block.id.workchain === masterchain) build(block)
    }
  }

  /** What the validators of a block have signed, in the form that a set has: every second one votes. */
  const signaturesOf = ({ id, prevKey }: LiteBlock): Buffer => {
    const set = setOf(prevKey)
    const isVote = set % 2 === 0
    const candidate = tagged(0xe8f9bcdc, writeId(id), Buffer.alloc(36, 9))
    const [session, slot] = [sha256(`session ${set}`), Buffer.of(id.seqno & 0xff, 0, 0, 0)]
    const vote = tagged(0x40a7e105, tagged(0xb691cd3f, slot, sha256(candidate)))
    const message = isVote
      ? tagged(0xa8e33df8, session, tlBytes(vote))
      : tagged(0xc50b6e70, id.root_hash, id.file_hash)
    const signed = Array.from({ length: validators }, (_, index) => {
      const seed = seedOf(set, index)
      const name = sha256(tagged(0x4813b4c6, publicOf(seed)))
      return Buffer.concat([name, tlBytes(sign(null, message, keyOf(seed)))])
    })
    const count = Buffer.alloc(4)
    count.writeInt32LE(validators)
    const list = [Buffer.alloc(8), count, ...signed]
    return isVote
      ? tagged(0xac249800, ...list, session, slot, tlBytes(candidate))
      : tagged(0xf644a6e6, ...list)
  }

  catchUp()
  const stop = chain.onBlock(catchUp)

  return {
    stop,
    find: (id: Pick<BlockId, 'workchain' | 'shard' | 'seqno'>): LiteBlock | undefined => {
      catchUp()
      return blocks.get(nameOf(id))
    },
    head: (): LiteBlock => {
      catchUp()
      return blocks.get(nameOf(chain.head().id))!
    },
    isKey,
    /** A signed link from a key block to a later one. */
    linkOf: (from: LiteBlock, to: LiteBlock): Buffer =>
      tagged(
        0x520fce1c,
        tagged(isKey(to.id.seqno) ? 0x997275b5 : 0xbc799737),
        writeId(from.id),
        writeId(to.id),
        tlBytes(convertToMerkleProof(to.cell).toBoc()),
        tlBytes(convertToMerkleProof(from.cell).toBoc()),
        signaturesOf(to),
      ),
    /** The header of a block and its state, as proofs. */
    stateProof: ({ cell, state }: LiteBlock): Buffer =>
      writeRoots([convertToMerkleProof(cell), convertToMerkleProof(state)]),
  }
}
