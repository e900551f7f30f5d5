import { Address } from '@ton/core'
import {
  ApiError,
  type Methods,
  type Params,
  readOptionalNumber,
  readText,
  readTexts,
} from './api-error.ts'
import type { Sight } from './api-v2.ts'
import { type Block, masterchain } from './block.ts'
import { findJettonWallets } from './jetton-wallets.ts'
import { wholeShard } from './shards.ts'
import type { FoundTransaction } from './store.ts'
import { accountStateV3, blockV3, jettonWalletV3, transactionV3 } from './wire-v3.ts'

const mostRows = 1_000

/**
 * The part of the toncenter HTTP API v3 that a tracker uses, as its server has it: parameters that it
 * does not know are left aside, what it cannot read is refused with 422, and what an index has no row
 * for is left out of the answer.
 */
export function createV3({ chain, shownHead, has, globalId }: Sight): Methods {
  const { store } = chain
  const show = (block: Block) => blockV3(block, globalId)
  const page = <row>(rows: readonly row[], params: Params): row[] => {
    const offset = Math.max(0, readOptionalNumber(params, 'offset') ?? 0)
    const limit = Math.max(1, readOptionalNumber(params, 'limit') ?? 10)
    if (limit > mostRows) throw new ApiError(422, `limit is not allowed: ${limit} > ${mostRows}`)
    return rows.slice(offset, offset + limit)
  }
  const sorted = <row>(rows: readonly row[], params: Params): readonly row[] => {
    if (params.sort === undefined || params.sort === 'asc') return rows
    if (params.sort !== 'desc') throw new ApiError(422, 'sort should be one of: asc, desc')
    return rows.toReversed()
  }
  const list = (found: readonly FoundTransaction[], params: Params) => ({
    transactions: page(sorted(found, params), params).map(transactionV3),
    address_book: {},
  })
  const master = (seqno: number, newest: number): Block | undefined =>
    seqno > newest ? undefined : store.block(masterchain, wholeShard, seqno)

  /** The blocks that are named by their place, or by the masterchain block that commits them. */
  const blocks = (params: Params): Block[] => {
    const newest = has('blocks')
    const [workchain, seqno, mc_seqno] = ['workchain', 'seqno', 'mc_seqno'].map((key) =>
      readOptionalNumber(params, key),
    )
    if (mc_seqno !== undefined) return mc_seqno > newest ? [] : store.blocksOf(mc_seqno)
    const shard = params.shard === undefined ? undefined : readShard(readText(params, 'shard'))
    if (workchain === undefined || shard === undefined)
      throw new ApiError(422, 'workchain and shard are required here')
    if (seqno !== undefined) {
      const block = store.block(workchain, shard, seqno)
      return block && block.mc_seqno <= newest ? [block] : []
    }
    if (workchain !== masterchain) throw new ApiError(422, 'seqno is required here')
    const first = Math.max(1, newest - mostRows)
    return Array.from({ length: newest - first + 1 }, (_, index) =>
      master(first + index, newest),
    ).filter((block) => block !== undefined)
  }

  return {
    masterchainInfo: {
      takes: [],
      answer: () => {
        const last = master(shownHead(), shownHead())!
        return { last: show(last), first: show(master(1, 1) ?? last) }
      },
    },
    blocks: {
      takes: [],
      answer: (params) => ({ blocks: page(sorted(blocks(params), params), params).map(show) }),
    },
    masterchainBlockShardState: {
      takes: [],
      answer: (params) => {
        const newest = has('masterchainBlockShardState')
        const block = master(readOptionalNumber(params, 'seqno') ?? 0, newest)
        if (!block) throw new ApiError(404, 'blocks not found')
        const tops = block.shards.map(({ workchain, shard, seqno }) =>
          store.block(workchain, shard, seqno),
        )
        return { blocks: [block, ...tops.filter((top) => top !== undefined)].map(show) }
      },
    },
    transactionsByMasterchainBlock: {
      takes: [],
      answer: (params) => {
        const seqno = readOptionalNumber(params, 'seqno') ?? 0
        return list(seqno > has() ? [] : store.transactionsByMaster(seqno), params)
      },
    },
    transactions: {
      takes: [],
      answer: (params) => {
        if (typeof params.hash === 'string') {
          const found = store.transactionByHash(readHash(params.hash))
          return list(found ? [found] : [], params)
        }
        const account = readAddress(readText(params, 'account')).toRawString()
        const whole = { below: 2n ** 63n - 1n, above: 0n, limit: mostRows }
        return list(store.transactionsByAccount(account, whole).toReversed(), params)
      },
    },
    accountStates: {
      takes: [],
      answer: (params) => {
        if (params.address === undefined) throw new ApiError(422, 'address of account is required')
        const newest = has('accountStates')
        const withCells = params.include_boc === undefined || params.include_boc === 'true'
        const accounts = readTexts(params, 'address')
          .map((text) => readAddress(text).toRawString())
          .filter((account) => store.state(account, newest) !== undefined)
        return {
          accounts: [...new Set(accounts)]
            .slice(0, mostRows)
            .map((account) => accountStateV3(account, chain.account(account, newest), withCells)),
          address_book: {},
          metadata: {},
        }
      },
    },
    'jetton/wallets': {
      takes: [],
      answer: async (params) => {
        const given = (key: string): Address[] | undefined =>
          params[key] === undefined ? undefined : readTexts(params, key).map(readAddress)
        const wanted = {
          address: given('address'),
          owner: given('owner_address'),
          jetton: given('jetton_address'),
        }
        if ((wanted.jetton?.length ?? 0) > 1 && wanted.owner?.length !== 1)
          throw new ApiError(422, 'exact one owner_address required for multiple jetton_address')
        const found = await findJettonWallets(chain, wanted, has('jetton/wallets'))
        return {
          jetton_wallets: page(found, params).map(jettonWalletV3),
          address_book: {},
          metadata: {},
        }
      },
    },
  }
}

function readAddress(text: string): Address {
  try {
    return Address.parse(text)
  } catch {
    throw new ApiError(422, `failed to decode: address ${text}`)
  }
}

function readShard(text: string): bigint {
  if (/^(?:0x)?[0-9a-f]{1,16}$/i.test(text)) return BigInt(`0x${text.replace(/^0x/, '')}`)
  throw new ApiError(422, `failed to decode: shard ${text}`)
}

function readHash(text: string): Buffer {
  const hash = Buffer.from(text, /^[0-9a-f]{64}$/i.test(text) ? 'hex' : 'base64')
  if (hash.length !== 32) throw new ApiError(422, `failed to decode: hash ${text}`)
  return hash
}
