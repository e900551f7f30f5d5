import {
  type BalanceQuery,
  BlockGoneError,
  type BlockRef,
  type Chain,
  ChainUnavailableError,
} from '../../chains/chain.ts'
import { type ByteMap, createByteMap, keyOf } from '../../lib/bytes.ts'
import type { Reading } from '../../storage/balances/balances.ts'
import type { DueBalance } from '../../storage/balances/changes.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findBlocks, holdBlock } from '../../storage/tracking/blocks.ts'
import type { TrackerTools } from '../tracker/tools.ts'

/** Each pair once, with the newest of its blocks. */
export function distinctPairs<pair extends DueBalance>(rows: readonly pair[]): pair[] {
  const placesOf = createPlaces()
  const pairs: pair[] = []
  for (const row of rows) {
    const place = placesOf(row.wallet_id, row.asset_id).getOrSet(row.address, pairs.length)
    const known = pairs[place]
    if (!known || known.block_number < row.block_number) pairs[place] = row
  }
  return pairs
}

/**
 * Places of addresses, for each wallet and asset. Of those there are few: a text that names all three
 * would have to be made and hashed for each of many thousand addresses.
 */
function createPlaces(): (wallet_id: string, asset_id: string) => ByteMap<number> {
  const wallets = new Map<string, Map<string, ByteMap<number>>>()
  return (wallet_id, asset_id) => {
    let assets = wallets.get(wallet_id)
    if (!assets) {
      assets = new Map()
      wallets.set(wallet_id, assets)
    }
    let places = assets.get(asset_id)
    if (!places) {
      places = createByteMap()
      assets.set(asset_id, places)
    }
    return places
  }
}

/** What names a balance. */
export const keyOfWork = (work: Pick<DueBalance, 'wallet_id' | 'address' | 'asset_id'>): string =>
  `${work.wallet_id}/${keyOf(work.address)}/${work.asset_id}`

/** Where a pair is read: never below the block that made the work, which after a reorganization may lack confirmations. */
export const blockFor = ({ confirmation, block_number }: DueBalance, head: number): number =>
  Math.max(head - Math.max(confirmation, 1) + 1, block_number, 0)

/** The block of a number, as it was stored or as the nodes have it. */
export async function findRef(
  { db, network_id, chain }: TrackerTools,
  number: number,
  signal: AbortSignal,
): Promise<BlockRef> {
  const [stored] = await findBlocks(db, network_id, [number])
  if (stored) return { number, hash: stored.block_hash }
  const header = await chain.header(number, signal)
  if (!header) throw new BlockGoneError(`no node has block ${number}`)
  return header
}

// The wallet does not matter for a reading, so all wallets share one key.
const anyone = ''

/** What is needed to read a pair. */
export type ReadPair = Omit<DueBalance, 'confirmation' | 'block_number' | 'ahead'>

/** Reads pairs at a block, once per address and asset however many wallets ask for it. */
export async function readPairs(
  chain: Chain,
  pairs: readonly ReadPair[],
  at: BlockRef,
  signal: AbortSignal,
): Promise<Reading[]> {
  const placesOf = createPlaces()
  const queries: BalanceQuery[] = []
  const asked = pairs.map((pair) => {
    const { address, asset_id, asset_type, contract_address, token_id } = pair
    const place = placesOf(anyone, asset_id).getOrSet(address, queries.length)
    if (place === queries.length)
      queries.push({
        address,
        asset: { asset_type, contract_address, token_id },
        ...(pair.token_account_address && { token_account_address: pair.token_account_address }),
      })
    return place
  })
  const answers = await chain.readBalances(queries, at, signal)
  // A node that is behind must not answer for a block that it has not seen: its value would be too
  // old.
  if (answers.some(({ block_number }) => block_number < at.number))
    throw new ChainUnavailableError(`no node has reached block ${at.number}`)
  return pairs.map((pair, index) => {
    const { balance, block_number } = answers[asked[index]!]!
    const { wallet_id, organization_id, address, asset_id, asset_type, contract_address } = pair
    return {
      wallet_id,
      organization_id,
      address,
      asset_id,
      asset_type,
      contract_address,
      balance,
      as_of_block: block_number,
    }
  })
}

/** Makes sure that what was read is of the chain as it is stored, and stays so until the transaction ends. */
export async function holdRead(
  trx: Db,
  { network_id, chain }: TrackerTools,
  { at, newest }: { at: readonly BlockRef[]; newest: BlockRef },
): Promise<void> {
  if (!chain.reorganizes) return
  for (const block of at)
    if (!(await holdBlock(trx, network_id, block)))
      throw new BlockGoneError(`block ${block.number} left the chain while balances were read`)
  // A node that changes branches may answer for a block of both with the one that it is leaving.
  if (!(await holdBlock(trx, network_id, newest)))
    throw new ChainUnavailableError('the chain reorganized while balances were read')
}
