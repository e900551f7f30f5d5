import type { BalanceQuery, BlockRef } from '../chain.ts'
import { formatAddress, formatUserFriendly } from './address.ts'
import type { IndexNode } from './index-node.ts'
import {
  type IndexBlock,
  type IndexState,
  readIndexBlocks,
  readIndexJettonWallets,
  readIndexStates,
} from './index-rows.ts'
import type { TonNodes } from './nodes.ts'

/** A contract of the masterchain that runs in every one of its blocks (the configuration). */
export const everyBlock = Buffer.concat([Buffer.from([0xff]), Buffer.alloc(32, 0x55)])

// Below this many, asking one by one is as good.
const fewest = 24
// The address of a request stays below 8 KiB, which is what web servers take.
const perRequest = 100
// Requests share the rate limit with everything else that the node is asked.
const requestsAtOnce = 4
const recentBlocks = 64
const unbroken = 16

/**
 * Reads many balances of one block from the indexes that nodes offer (API v3): a hundred in one
 * request. An index answers for the present only, so an answer counts where it must be that of the
 * block as well: the index has the block (by its hash) and those before it, the answer is not older
 * than the block (by a contract that every block runs), and the account's last transaction is below
 * the logical time at which the block left its shard. What is left over is read one by one.
 */
export function createReadIndexed({
  nodes,
}: {
  nodes: TonNodes
}): (
  queries: readonly BalanceQuery[],
  at: BlockRef,
  signal: AbortSignal,
) => Promise<Map<BalanceQuery, bigint>> {
  return async (queries, at, signal) => {
    const found = new Map<BalanceQuery, bigint>()
    // The jetton wallet holds a token's balance; without its address there is nothing to ask for.
    const places = queries.flatMap((query) => {
      const isToken = query.asset.contract_address.length > 0
      const account = isToken ? query.token_account_address : query.address
      return account ? [{ query, account, isToken }] : []
    })
    if (places.length < fewest) return found
    // The first index that has the block answers for all; a second one could only say the same.
    for (const index of await nodes.indexes(signal)) {
      const view = await viewOf(index, nodes, at, signal)
      if (!view) continue
      const chunks = Array.from({ length: Math.ceil(places.length / perRequest) }, (_, number) =>
        places.slice(number * perRequest, (number + 1) * perRequest),
      )
      const work = async (): Promise<void> => {
        // An index that fails meanwhile ends the work; the rest is read one by one by the caller.
        for (let chunk = chunks.pop(); chunk && index.isUsable(); chunk = chunks.pop()) {
          const states = await statesOf(index, view, chunk, signal)
          const wallets = await walletsOf(index, states, chunk, signal)
          for (const { query, account, isToken } of chunk) {
            const state = (isToken ? wallets : states).get(keyOf(account))
            if (state && isOf(state, query)) found.set(query, state.balance)
          }
        }
      }
      await Promise.all(Array.from({ length: requestsAtOnce }, work))
      return found
    }
    return found
  }
}

type Place = { query: BalanceQuery; account: Buffer; isToken: boolean }
type Held = IndexState & { owner?: Buffer; jetton?: Buffer }
/** How an index sees a block: where each shard stood, and how new an answer has to be. */
type View = { tops: readonly IndexBlock[]; notBefore: bigint }

const keyOf = (account: Buffer): string => account.toString('latin1')

/** The index lists what the contract says of itself: only what was proved at the import counts. */
const isOf = ({ owner, jetton }: Held, { address, asset }: BalanceQuery): boolean =>
  !owner || !jetton || (owner.equals(address) && jetton.equals(asset.contract_address))

async function viewOf(
  index: IndexNode,
  nodes: TonNodes,
  at: BlockRef,
  signal: AbortSignal,
): Promise<View | undefined> {
  const master = [
    ['workchain', '-1'],
    ['shard', '8000000000000000'],
  ] as const
  const blocks = (result: Record<string, unknown>) => readIndexBlocks(result.blocks)
  const newest = [...master, ['limit', String(recentBlocks)], ['sort', 'desc']] as const
  const recent = await index.ask({ path: 'blocks', query: newest, signal, accept: blocks })
  if (!recent || recent.length === 0) return undefined
  // Indexes write blocks as they come: one of the last ones may be there before its predecessor is.
  const there = new Set(recent.map(({ seqno }) => seqno))
  const oldest = Math.min(...there)
  for (let seqno = Math.max(oldest, at.number - unbroken); seqno <= at.number; seqno++)
    if (!there.has(seqno)) return undefined
  const query = [['seqno', String(at.number)]] as const
  const path = 'masterchainBlockShardState'
  const tops = await index.ask({ path, query, signal, accept: blocks })
  const named = [['seqno', String(at.number)], ...master] as const
  const own =
    recent.find(({ seqno }) => seqno === at.number) ??
    (await index.ask({ path: 'blocks', query: named, signal, accept: blocks }))?.[0]
  if (!tops || !own) return undefined
  // An index of another network would have plausible balances for every address.
  if (!own.root_hash.equals(at.hash)) {
    index.accuse('has another chain')
    return undefined
  }
  const notBefore = await lastTimeOf(nodes, at, signal)
  return notBefore === undefined ? undefined : { tops: [own, ...tops], notBefore }
}

/** When the contract that every block runs has run last, as of a block. */
async function lastTimeOf(
  nodes: TonNodes,
  at: BlockRef,
  signal: AbortSignal,
): Promise<bigint | undefined> {
  return await nodes.ask({
    method: 'getAddressInformation',
    params: { address: formatAddress(everyBlock), seqno: at.number },
    seqno: at.number,
    signal,
    accept: (result) => {
      const { last_transaction_id: last } = (result ?? {}) as {
        last_transaction_id?: { lt?: unknown } | null
      }
      const lt = String(last?.lt ?? '0')
      return /^\d{1,20}$/.test(lt) ? BigInt(lt) : undefined
    },
  })
}

/** The states that were those of the block as well. */
async function statesOf(
  index: IndexNode,
  { tops, notBefore }: View,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<Map<string, IndexState>> {
  const accounts = [everyBlock, ...places.map(({ account }) => account)]
  const states = await index.ask({
    path: 'accountStates',
    query: [
      ...accounts.map((account) => ['address', formatUserFriendly(account)] as const),
      ['include_boc', 'false'] as const,
    ],
    signal,
    accept: (result) => readIndexStates(result.accounts),
  })
  const found = new Map((states ?? []).map((state) => [keyOf(state.address), state]))
  // The answer carries the time of the contract that every block runs: an index that lags is found by it.
  const isOld = (found.get(keyOf(everyBlock))?.last_lt ?? 0n) < notBefore
  for (const [key, { address, last_lt }] of found) {
    const top = tops.find((block) => holds(block, address))
    // The account has moved on since the block: its balance of now is not that of the block.
    if (isOld || !top || last_lt >= top.end_lt) found.delete(key)
  }
  return found
}

/** What jetton wallets held as of their states. */
async function walletsOf(
  index: IndexNode,
  states: ReadonlyMap<string, IndexState>,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<Map<string, Held>> {
  const asked = places.filter(({ account, isToken }) => isToken && states.has(keyOf(account)))
  if (asked.length === 0) return new Map()
  const wallets = await index.ask({
    path: 'jetton/wallets',
    query: [
      ...asked.map(({ account }) => ['address', formatUserFriendly(account)] as const),
      ['limit', String(perRequest)] as const,
    ],
    signal,
    accept: (result) => readIndexJettonWallets(result.jetton_wallets),
  })
  return new Map(
    (wallets ?? [])
      .filter(({ address, last_lt }) => states.get(keyOf(address))?.last_lt === last_lt)
      .map((wallet) => [keyOf(wallet.address), wallet]),
  )
}

const bits = (1n << 64n) - 1n

/** Whether an account belongs to the shard of a block. */
function holds({ workchain, shard }: IndexBlock, account: Buffer): boolean {
  if (account.readInt8(0) !== workchain) return false
  // The lowest set bit ends the prefix of a shard; accounts with that prefix belong to it.
  const mark = shard & -shard & bits
  return ((shard ^ account.readBigUInt64BE(1)) & ~((mark << 1n) - 1n) & bits) === 0n
}
