import { Address, Cell, getMethodId } from '@ton/core'
import {
  ApiError,
  type Methods,
  type Params,
  readNumber,
  readOptionalNumber,
  readText,
} from './api-error.ts'
import type { Block } from './block.ts'
import { masterchain } from './block.ts'
import { RefusedMessageError, type TonChain } from './chain.ts'
import type { Server } from './servers.ts'
import { wholeShard } from './shards.ts'
import { readStackItem, writeStack } from './stack.ts'
import { blockIdV2 } from './wire-v2.ts'

/** A part of an answer that is JSON already. */
export type Written = { written: string }

/** What an endpoint sees of the chain. */
export type Sight = {
  chain: TonChain
  globalId: number
  /** The newest masterchain block that this endpoint shows, and the newest that a method has. */
  shownHead(): number
  has(method?: string): number
  /** The oldest masterchain block that this endpoint keeps. */
  lowest(): number
  /** Which server it behaves like. */
  server: Server
}

const blockKeys = ['workchain', 'shard', 'seqno', 'root_hash', 'file_hash'] as const
const pageKeys = [...blockKeys, 'after_lt', 'after_hash', 'count'] as const
const accountKeys = ['address', 'seqno'] as const
const locateKeys = ['source', 'destination', 'created_lt'] as const

/** The methods of the toncenter HTTP API v2, which refuses parameters that it does not know. */
export function createV2(sight: Sight): Methods {
  const { chain, globalId, server } = sight
  const { store } = chain
  const method = (takes: readonly string[], answer: (params: Params) => unknown) => ({
    takes,
    answer,
  })

  // A lite server answers the same for a block that it does not have yet and for one that it has deleted.
  const noBlock = ({ workchain, shard, seqno }: Place) =>
    new ApiError(
      500,
      `LITE_SERVER_NOTREADY: cannot find block (${workchain},${shard.toString(16)}) seqno=${seqno}: seqno not in db`,
    )
  const master = (seqno: number): Block => {
    const block = store.block(masterchain, wholeShard, seqno)
    if (!block || seqno > sight.has() || seqno < sight.lowest())
      throw noBlock({ workchain: masterchain, shard: wholeShard, seqno })
    return block
  }
  const newest = (): Block => store.block(masterchain, wholeShard, sight.shownHead())!
  const findBlock = (params: Params): Block => {
    const workchain = readNumber(params, 'workchain')
    const shard = BigInt.asUintN(64, BigInt(readText(params, 'shard')))
    const seqno = readNumber(params, 'seqno')
    const block = store.block(workchain, shard, seqno)
    const isThere = block && block.mc_seqno <= sight.has() && block.mc_seqno >= sight.lowest()
    if (!isThere) {
      if (params.root_hash === undefined || params.file_hash === undefined)
        throw noBlock({ workchain, shard, seqno })
      const name = `(${workchain},${shard.toString(16)},${seqno}):${hexOf(params.root_hash)}:${hexOf(params.file_hash)}`
      throw new ApiError(500, `LITE_SERVER_NOTREADY: cannot load block ${name} : not in db`)
    }
    for (const key of ['root_hash', 'file_hash'] as const)
      if (params[key] !== undefined && !sameHash(params[key], block.id[key]))
        throw new ApiError(500, `LITE_SERVER_UNKNOWN: block has another ${key}`)
    return block
  }
  const page = (params: Params) => {
    const block = findBlock(params)
    const count = readOptionalNumber(params, 'count') ?? 40
    const all = store.transactionsOf(block.id)
    const after = params.after_lt === undefined ? undefined : readText(params, 'after_lt')
    const hash = after === undefined ? '' : readText(params, 'after_hash').toLowerCase()
    const from =
      after === undefined ? 0 : all.findIndex(({ wire }) => isAfter(wire, hash, after)) + 1
    const list = all.slice(from, from + count)
    return { block, count, list, incomplete: from + count < all.length }
  }
  const address = (params: Params, key = 'address'): Address => {
    try {
      return Address.parse(readText(params, key))
    } catch {
      throw server.wrongAddress(String(params[key]))
    }
  }
  const at = (params: Params): Block => {
    const seqno = readOptionalNumber(params, 'seqno')
    return seqno === undefined ? newest() : master(seqno)
  }
  const information = (params: Params) => {
    const block = at(params)
    const account = chain.account(address(params).toRawString(), block.id.seqno)
    return {
      '@type': 'raw.fullAccountState',
      balance: String(account.balance),
      extra_currencies: [],
      code: account.code?.toBoc().toString('base64') ?? '',
      data: account.data?.toBoc().toString('base64') ?? '',
      last_transaction_id: {
        '@type': 'internal.transactionId',
        lt: String(account.last_lt),
        hash: account.last_hash.toString('base64'),
      },
      block_id: blockIdV2(block.id),
      frozen_hash: '',
      sync_utime: block.utime,
      state: account.status,
    }
  }
  const shards = method(['seqno'], (params) => ({
    '@type': 'blocks.shards',
    shards: master(readNumber(params, 'seqno')).shards.map(blockIdV2),
  }))
  const send = async (params: Params): Promise<Buffer> => {
    try {
      return await chain.send(Buffer.from(readText(params, 'boc'), 'base64'))
    } catch (error) {
      if (error instanceof RefusedMessageError)
        throw new ApiError(500, `LITE_SERVER_UNKNOWN: ${error.message}`)
      throw new ApiError(422, `boc: ${error instanceof Error ? error.message : 'not understood'}`)
    }
  }

  return {
    getMasterchainInfo: method([], () => {
      const { id } = newest()
      return {
        '@type': 'blocks.masterchainInfo',
        last: blockIdV2(id),
        state_root_hash: id.root_hash.toString('base64'),
        init: blockIdV2(chain.zero(masterchain)),
      }
    }),
    getConsensusBlock: method([], () => {
      const { id, utime } = newest()
      return {
        '@type': 'ext.blocks.consensusBlock',
        consensus_block: id.seqno,
        timestamp: utime,
      }
    }),
    getShards: shards,
    shards,
    lookupBlock: method(['workchain', 'shard', 'seqno'], (params) =>
      blockIdV2(findBlock(params).id),
    ),
    getBlockHeader: method(blockKeys, (params) => {
      const block = findBlock(params)
      return {
        '@type': 'blocks.header',
        id: blockIdV2(block.id),
        global_id: globalId,
        version: 0,
        after_merge: block.after_merge,
        after_split: block.after_split,
        before_split: false,
        want_merge: false,
        want_split: false,
        validator_list_hash_short: 0,
        catchain_seqno: 0,
        min_ref_mc_seqno: 0,
        is_key_block: false,
        prev_key_block_seqno: 0,
        start_lt: String(block.start_lt),
        end_lt: String(block.end_lt),
        gen_utime: block.utime,
        prev_blocks: block.prev.map(blockIdV2),
      }
    }),
    getBlockTransactions: method(pageKeys, (params) => {
      const { block, count, list, incomplete } = page(params)
      const transactions = list.map(({ wire }) => {
        const { account, transaction_id } = JSON.parse(wire)
        const { lt, hash } = transaction_id
        return { '@type': 'blocks.shortTxId', mode: 135, account, lt, hash }
      })
      const id = blockIdV2(block.id)
      return { '@type': 'blocks.transactions', id, req_count: count, incomplete, transactions }
    }),
    getBlockTransactionsExt: method(pageKeys, (params): Written => {
      const { block, count, list, incomplete } = page(params)
      const id = JSON.stringify(blockIdV2(block.id))
      const transactions = server.writePage(list.map(({ wire }) => wire).join(','))
      return {
        written: `{"@type":"blocks.transactionsExt","id":${id},"req_count":${count},"incomplete":${incomplete},"transactions":[${transactions}]}`,
      }
    }),
    getTransactions: method(
      ['address', 'limit', 'lt', 'hash', 'to_lt', 'archival'],
      (params): Written => {
        const found = store.transactionsByAccount(address(params).toRawString(), {
          below: params.lt === undefined ? 2n ** 63n - 1n : BigInt(String(params.lt)),
          above: BigInt(String(params.to_lt ?? 0)),
          limit: readOptionalNumber(params, 'limit') ?? 10,
        })
        const seen = found.filter(({ mc_seqno }) => mc_seqno <= sight.has())
        return { written: `[${seen.map(({ wire }) => wire).join(',')}]` }
      },
    ),
    tryLocateResultTx: method(locateKeys, (params): Written => {
      const to = address(params, 'destination').toRawString()
      const lt = readText(params, 'created_lt')
      const all = store.transactionsByAccount(to, {
        below: 2n ** 63n - 1n,
        above: BigInt(lt),
        limit: 1_000,
      })
      const found = all.find(({ wire }) => JSON.parse(wire).in_msg?.created_lt === lt)
      if (!found) throw new ApiError(500, 'LITE_SERVER_UNKNOWN: result transaction was not found')
      return { written: found.wire }
    }),
    getAddressInformation: method(accountKeys, information),
    getAddressBalance: method(accountKeys, (params) => information(params).balance),
    getAddressState: method(accountKeys, (params) => information(params).state),
    runGetMethod: method(['address', 'method', 'stack', 'seqno'], async (params) => {
      const block = at(params)
      const to = address(params)
      const { code, data, balance } = chain.account(to.toRawString(), block.id.seqno)
      if (!code || !data)
        return { '@type': 'smc.runResult', gas_used: 0, exit_code: -13, stack: [] }
      const name = params.method
      const stack = Array.isArray(params.stack) ? params.stack.map(readStackItem) : []
      const answer = await chain.rules.ask(
        { address: to, code, data, balance },
        {
          method: typeof name === 'number' ? name : getMethodId(readText(params, 'method')),
          stack,
          utime: block.utime,
        },
      )
      const { exit_code, gas_used, stack_boc } = answer
      const items = exit_code === 0 || exit_code === 1 ? writeStack(Cell.fromBase64(stack_boc)) : []
      return { '@type': 'smc.runResult', gas_used, exit_code, stack: items }
    }),
    sendBoc: method(['boc'], async (params) => {
      await send(params)
      return { '@type': 'ok' }
    }),
    sendBocReturnHash: method(['boc'], async (params) => ({
      '@type': 'raw.extMessageInfo',
      hash: (await send(params)).toString('base64'),
    })),
  }
}

type Place = { workchain: number; shard: bigint; seqno: number }

const hexOf = (hash: unknown): string =>
  Buffer.from(String(hash), 'base64').toString('hex').toUpperCase()

const sameHash = (given: unknown, hash: Buffer): boolean =>
  typeof given === 'string' &&
  (given === hash.toString('base64') || given.toLowerCase() === hash.toString('hex'))

/** Whether a transaction is the one that a page ended with: by its account and logical time. */
function isAfter(wire: string, account: string, lt: string): boolean {
  const { account: raw, transaction_id } = JSON.parse(wire)
  return transaction_id.lt === lt && String(raw).split(':')[1] === account
}
