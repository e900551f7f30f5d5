// A lite server as a node: it answers the questions of API v2 from whole blocks, whose bytes have the hashes of their
// names. With full verification masterchain blocks are proved by their signatures, shard blocks by the masterchain block that
// names them, and balances of the coin by the state. This folder uses `chains/nodes` and the forms of `raw.ts`. Results of
// get-methods are what the server says.

import { createHash } from 'node:crypto'
import { Address, Cell, getMethodId, serializeTuple, type TupleItem } from '@ton/core'
import { LRUCache } from 'lru-cache'
import { NodeFault } from '../../nodes/fault.ts'
import type { VerificationCounts } from '../../verification.ts'
import type { RawBlockId, RawTransaction } from '../raw.ts'
import type { Toncenter } from '../toncenter.ts'
import { type AdnlAddress, createAdnl } from './adnl.ts'
import {
  type BlockInfo,
  holds,
  readInfo,
  reading,
  readProvenBalance,
  readShardTops,
  readTransactions,
} from './block-cells.ts'
import type { KeyBlocks } from './key-blocks.ts'
import {
  getAccountState,
  getBlock,
  getBlockProof,
  getMasterchainInfo,
  type LiteBlockId,
  type LiteRequest,
  lookupBlock,
  runSmcMethod,
} from './messages.ts'
import { readStack } from './stack.ts'

/** What is kept of a block. */
type LiteBlock = {
  id: LiteBlockId
  info: BlockInfo
  tops: LiteBlockId[]
  transactions: RawTransaction[]
}

// Bounds of the memory. Several questions about one block come at about the same time.
const mostBlocks = 128
const mostNames = 1_024
// Longer than a question may take: following key blocks for the first time is several requests.
const workTimeoutMs = 60_000
// The shard of a workchain that is not split: an empty prefix, and the one after it.
const wholeShard = 1n << 63n

const sameId = (one: LiteBlockId, other: LiteBlockId): boolean =>
  one.root_hash.equals(other.root_hash) && one.file_hash.equals(other.file_hash)

/** The name of a block as API v2 writes it. */
const toRaw = ({ workchain, shard, seqno, root_hash, file_hash }: LiteBlockId): RawBlockId => ({
  workchain,
  shard: BigInt.asIntN(64, shard).toString(),
  seqno,
  root_hash: root_hash.toString('base64'),
  file_hash: file_hash.toString('base64'),
})

type Params = Record<string, unknown>

/** The name in the parameters of a call; without hashes where the caller does not know them. */
const fromParams = ({ workchain, shard, seqno, root_hash, file_hash }: Params) => ({
  workchain: Number(workchain),
  shard: BigInt.asUintN(64, BigInt(String(shard))),
  seqno: Number(seqno),
  ...(typeof root_hash === 'string' &&
    typeof file_hash === 'string' && {
      root_hash: Buffer.from(root_hash, 'base64'),
      file_hash: Buffer.from(file_hash, 'base64'),
    }),
})

/** A client of one lite server. */
export function createLiteServer(
  address: AdnlAddress,
  {
    faultOf,
    counts,
    keyBlocks,
  }: {
    /** What an error text of a lite server means. */
    faultOf(text: string): NodeFault
    counts: VerificationCounts
    /** With full verification. */
    keyBlocks?: KeyBlocks | undefined
  },
): Toncenter {
  const adnl = createAdnl(address)
  const blocks = new LRUCache<string, Promise<LiteBlock>>({ max: mostBlocks })
  const names = new LRUCache<string, Promise<LiteBlockId>>({ max: mostNames })

  const ask = async <answer>(
    { bytes, read }: LiteRequest<answer>,
    signal: AbortSignal,
  ): Promise<answer> => read(await adnl.query(bytes, signal), faultOf)

  const nameOf = (
    place: Omit<LiteBlockId, 'root_hash' | 'file_hash'>,
    signal: AbortSignal,
  ): Promise<LiteBlockId> =>
    kept(names, `${place.workchain} ${place.shard} ${place.seqno}`, signal, async (limited) => {
      const id = await ask(lookupBlock(place), limited)
      const isAsked =
        id.workchain === place.workchain && id.shard === place.shard && id.seqno === place.seqno
      if (!isAsked) throw new NodeFault('invalid', 'lookupBlock: another block than asked for')
      return id
    })
  const masterId = (seqno: number, signal: AbortSignal): Promise<LiteBlockId> =>
    nameOf({ workchain: -1, shard: wholeShard, seqno }, signal)

  const fetchBlock = async (id: LiteBlockId, signal: AbortSignal): Promise<LiteBlock> => {
    const data = await ask(getBlock(id), signal)
    const refuse = (why: string): never => {
      const reason = `block ${id.workchain}:${id.shard.toString(16)}:${id.seqno} ${why}`
      counts.refuse('blocks', reason)
      throw new NodeFault('invalid', reason)
    }
    // Both hashes are part of the name: that of the file proves the bytes, that of the root the cells.
    if (!createHash('sha256').update(data).digest().equals(id.file_hash))
      refuse('does not have the hash of its file')
    const block = reading(`block ${id.seqno}`, (): LiteBlock => {
      const root = Cell.fromBoc(data)[0]!
      if (!root.hash().equals(id.root_hash)) refuse('does not have the hash of its root')
      const info = readInfo(root)
      const isAsked =
        info.workchain === id.workchain && info.shard === id.shard && info.seqno === id.seqno
      if (!isAsked) refuse('is another one')
      const tops = id.workchain === -1 ? readShardTops(root) : []
      return { id, info, tops, transactions: readTransactions(root, id.workchain) }
    })
    counts.check('blocks')
    return block
  }
  const blockOf = (id: LiteBlockId, signal: AbortSignal): Promise<LiteBlock> =>
    kept(blocks, id.root_hash.toString('hex'), signal, async (limited) => {
      // Shard blocks are named, with their hashes, by a masterchain block that was proved.
      if (id.workchain === -1) await prove(id, limited)
      return await fetchBlock(id, limited)
    })

  /** The last key block as the server says, where no block is trusted. */
  const findKey = async (signal: AbortSignal): Promise<LiteBlockId> => {
    const { last } = await ask(getMasterchainInfo(), signal)
    const { info } = await fetchBlock(last, signal)
    return await masterId(info.prevKeySeqno, signal)
  }
  const prove = async (id: LiteBlockId, signal: AbortSignal): Promise<void> =>
    await keyBlocks?.prove(
      id,
      (known, target) => ask(getBlockProof(known, target), signal),
      () => findKey(signal),
    )

  const master = async (seqno: unknown, signal: AbortSignal): Promise<LiteBlock> => {
    const id =
      seqno === undefined
        ? (await ask(getMasterchainInfo(), signal)).last
        : await masterId(Number(seqno), signal)
    return await blockOf(id, signal)
  }

  const methods: Record<string, (params: Params, signal: AbortSignal) => Promise<unknown>> = {
    getMasterchainInfo: async (_, signal) => {
      const { last, init } = await ask(getMasterchainInfo(), signal)
      return { last: toRaw(last), init: toRaw({ ...init, shard: wholeShard, seqno: 0 }) }
    },
    getBlockHeader: async (params, signal) => {
      const { root_hash, file_hash, ...place } = fromParams(params)
      const id =
        root_hash && file_hash ? { ...place, root_hash, file_hash } : await nameOf(place, signal)
      const { info } = await blockOf(id, signal)
      const { global_id, time, prev } = info
      return { id: toRaw(id), global_id, gen_utime: time, prev_blocks: prev.map(toRaw) }
    },
    shards: async ({ seqno }, signal) => ({
      shards: (await master(seqno, signal)).tops.map(toRaw),
    }),
    getBlockTransactionsExt: async (params, signal) => {
      const { root_hash, file_hash, ...place } = fromParams(params)
      if (!root_hash || !file_hash) throw new NodeFault('refused', 'a block without its hashes')
      const { transactions } = await blockOf({ ...place, root_hash, file_hash }, signal)
      return { id: toRaw({ ...place, root_hash, file_hash }), incomplete: false, transactions }
    },
    getAddressInformation: async ({ address, seqno }, signal) => {
      const { workChain: workchain, hash } = Address.parse(String(address))
      const { id, tops } = await master(seqno, signal)
      const shard =
        workchain === -1
          ? id
          : tops.find((top) => top.workchain === workchain && holds(top.shard, hash))
      // No shard holds the account, so there is no state of it.
      if (!shard) return { balance: '0', block_id: toRaw(id) }
      const found = await ask(getAccountState(id, { workchain, hash }), signal)
      const proven = (): bigint => {
        if (!sameId(found.shardBlock, shard)) throw new Error('a proof of another block')
        return readProvenBalance(found.proof, shard, hash)
      }
      const balance = reading(`the state of ${address} at ${id.seqno}`, () => {
        try {
          return proven()
        } catch (error) {
          counts.refuse('balances', `the state of ${address} at ${id.seqno} is not proved`)
          throw error
        }
      })
      counts.check('balances')
      return { balance: String(balance), block_id: toRaw(id) }
    },
    runGetMethod: async ({ address, method, stack, seqno }, signal) => {
      const { workChain: workchain, hash } = Address.parse(String(address))
      const { id } = await master(seqno, signal)
      // The get-methods that are called take addresses only, which are slices.
      const items = (stack as [string, string][]).map(
        ([, boc]): TupleItem => ({ type: 'slice', cell: Cell.fromBase64(boc) }),
      )
      const ran = await ask(
        runSmcMethod(
          id,
          { workchain, hash },
          {
            method: getMethodId(String(method)),
            params: serializeTuple(items).toBoc(),
          },
        ),
        signal,
      )
      return { exit_code: ran.exit_code, stack: ran.result ? readStack(ran.result) : [] }
    },
  }

  return {
    call: async (method, params, signal) => {
      const work = methods[method]
      if (!work) throw new NodeFault('refused', `${method} is not asked of lite servers`)
      return await work(params as Params, signal)
    },
    stop: async () => adnl.stop(),
  }
}

/**
 * What is known or being asked for; a failure is forgotten. Several questions about a block come at the same time and share
 * the work, so that it does not end with the signal of one of them.
 */
function kept<value>(
  cache: LRUCache<string, Promise<value>>,
  key: string,
  signal: AbortSignal,
  make: (signal: AbortSignal) => Promise<value>,
): Promise<value> {
  const known = cache.get(key)
  const made = known ?? make(AbortSignal.timeout(workTimeoutMs))
  if (!known) {
    cache.set(key, made)
    made.catch(() => {
      if (cache.peek(key) === made) cache.delete(key)
    })
  }
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    made.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
