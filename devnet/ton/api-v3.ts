import { Address } from '@ton/core'
import { ApiError, type Methods, type Params, readOptionalNumber, readText } from './api-error.ts'
import type { Sight } from './api-v2.ts'
import type { FoundTransaction } from './store.ts'
import { transactionV3 } from './wire-v3.ts'

const blockV3 = (block: import('./block.ts').Block) => ({
  workchain: block.id.workchain,
  shard: block.id.shard.toString(16).padStart(16, '0').toUpperCase(),
  seqno: block.id.seqno,
  root_hash: block.id.root_hash.toString('base64'),
  file_hash: block.id.file_hash.toString('base64'),
  gen_utime: String(block.utime),
  tx_count: block.tx_count,
  masterchain_block_ref: {
    workchain: -1,
    shard: '8000000000000000',
    seqno: block.mc_seqno,
  },
  prev_blocks: block.prev.map(({ workchain, shard, seqno }) => ({
    workchain,
    shard: shard.toString(16).padStart(16, '0').toUpperCase(),
    seqno,
  })),
})

/** The part of the toncenter HTTP API v3 that a tracker uses. */
export function createV3({ chain, told, has }: Sight): Methods {
  const { store } = chain
  const list = (found: readonly FoundTransaction[], params: Params) => {
    const sorted = params.sort === 'desc' ? found.toReversed() : [...found]
    const offset = readOptionalNumber(params, 'offset') ?? 0
    const limit = Math.min(readOptionalNumber(params, 'limit') ?? 10, 1_000)
    return {
      transactions: sorted.slice(offset, offset + limit).map(transactionV3),
      address_book: {},
    }
  }
  const addresses = (params: Params): string[] => {
    const given = params.address
    const texts = Array.isArray(given) ? given.map(String) : [readText(params, 'address')]
    return texts.map((text) => Address.parse(text).toRawString())
  }
  return {
    masterchainInfo: {
      takes: [],
      answer: () => ({
        last: blockV3(store.block(-1, 1n << 63n, told())!),
        first: { workchain: -1, shard: '8000000000000000', seqno: 1 },
      }),
    },
    blocks: {
      takes: ['mc_seqno', 'limit', 'offset'],
      answer: (params) => {
        const seqno = Number(params.mc_seqno)
        return { blocks: seqno > has() ? [] : store.blocksOf(seqno).map(blockV3) }
      },
    },
    transactionsByMasterchainBlock: {
      takes: ['seqno', 'limit', 'offset', 'sort'],
      answer: (params) => {
        const seqno = Number(params.seqno)
        return list(seqno > has() ? [] : store.transactionsByMaster(seqno), params)
      },
    },
    transactions: {
      takes: ['account', 'hash', 'limit', 'offset', 'sort'],
      answer: (params) => {
        if (typeof params.hash === 'string') {
          const form = /^[0-9a-f]{64}$/i.test(params.hash) ? 'hex' : 'base64'
          const found = store.transactionByHash(Buffer.from(params.hash, form))
          return list(found ? [found] : [], params)
        }
        const account = Address.parse(readText(params, 'account')).toRawString()
        const page = { below: 2n ** 63n - 1n, above: 0n, limit: 1_000 }
        return list(store.transactionsByAccount(account, page).toReversed(), params)
      },
    },
    accountStates: {
      takes: ['address', 'include_boc'],
      answer: (params) => ({
        accounts: addresses(params).map((address) => {
          const { balance, status, last_lt, last_hash } = chain.account(address, has())
          return {
            address: address.toUpperCase(),
            balance: String(balance),
            status: status === 'uninitialized' ? 'uninit' : status,
            last_transaction_lt: String(last_lt),
            last_transaction_hash: last_hash.toString('base64'),
          }
        }),
      }),
    },
    unknown: {
      takes: [],
      answer: () => {
        throw new ApiError(404, 'not found')
      },
    },
  }
}
