import { randomUUIDv7 } from 'node:crypto'
import type { BalanceQuery, BlockRef } from '../chains/chain.ts'
import {
  BalancesUnreadableError,
  BlockGoneError,
  BlockMissingError,
  ChainUnavailableError,
} from '../chains/chain.ts'
import {
  applyDeltas,
  type DueBalance,
  listDueBalances,
  postponeBalanceChanges,
  settleBalanceChanges,
} from '../storage/balance-changes.ts'
import { rememberReadings, storeReadings } from '../storage/balances.ts'
import { awaitCursor, findBlocks, findCursor, holdBlock } from '../storage/blocks.ts'
import { assertLease } from '../storage/leases.ts'
import type { TrackerTools } from './tracker-store.ts'

const rowsPerRound = 2_000
const postponeBlocks = 32

/**
 * Brings the balances up to date that the cursor has made due: adds net changes, or reads at the
 * newest block that has the wallet's confirmation, once per address and asset however many wallets
 * and blocks ask for it. Says how many pairs were done; call it again until there are none.
 */
export async function settleBalances(tools: TrackerTools, signal: AbortSignal): Promise<number> {
  const { db, clock, chain_id, chain, lease } = tools
  const cursor = await findCursor(db, chain_id)
  if (!cursor) return 0
  const head = cursor.block_number
  const newest = { number: head, hash: cursor.block_hash }
  let done = 0
  if (chain.balances === 'delta')
    done += await db.transaction().execute(async (trx) => {
      await assertLease(trx, lease.name, lease.epoch)
      await awaitCursor(trx, chain_id)
      return await applyDeltas(trx, { chain_id, head, now: new Date(clock.now()) })
    })
  const due = distinctPairs(await listDueBalances(db, { chain_id, head, limit: rowsPerRound }))
  const groups = Map.groupBy(due, (pair) => blockFor(pair, head, chain.balances))
  const errors: unknown[] = []
  for (const [number, pairs] of groups) {
    signal.throwIfAborted()
    let at: BlockRef | undefined
    try {
      at = number === head ? newest : await findRef(tools, number, signal)
      const left = await readGroupAround(tools, { at, newest, pairs }, errors, signal)
      if (left.length > 0)
        await postponeBalanceChanges(db, left, { head, due_block: head + postponeBlocks })
      done += pairs.length - left.length
    } catch (error) {
      if (!(error instanceof BlockGoneError || error instanceof ChainUnavailableError)) throw error
      errors.push(error)
      const isUnreadable =
        error instanceof BlockMissingError ||
        (error instanceof BlockGoneError && at && (await isOnChain(tools, at, signal)))
      // No node has it any more, or its state: the others go first.
      if (isUnreadable)
        await postponeBalanceChanges(db, pairs, { head, due_block: head + postponeBlocks })
    }
  }
  // One block that cannot be read must not hold up the rest, and must not be kept quiet either.
  if (errors.length > 0) throw errors[0]
  return done
}

/** Each pair once, with the newest of its blocks. */
function distinctPairs(rows: readonly DueBalance[]): DueBalance[] {
  const pairs = new Map<string, DueBalance>()
  for (const row of rows) {
    const key = keyOfWork(row)
    const known = pairs.get(key)
    if (!known || known.block_number < row.block_number) pairs.set(key, row)
  }
  return [...pairs.values()]
}

const keyOfWork = (work: Pick<DueBalance, 'wallet_id' | 'address' | 'asset_id'>): string =>
  `${work.wallet_id}/${work.address.toString('latin1')}/${work.asset_id}`

/** Never below the block that made the work: after a reorganization that may lack confirmations. */
const blockFor = (
  { confirmation, block_number }: DueBalance,
  head: number,
  mode: 'read' | 'delta',
): number =>
  mode === 'delta' ? head : Math.max(head - Math.max(confirmation, 1) + 1, block_number, 0)

async function findRef(
  { db, chain_id, chain }: TrackerTools,
  number: number,
  signal: AbortSignal,
): Promise<BlockRef> {
  const [stored] = await findBlocks(db, chain_id, [number])
  if (stored) return { number, hash: stored.block_hash }
  const header = await chain.header(number, signal)
  if (!header) throw new BlockGoneError(`no node has block ${number}`)
  return header
}

/** Whether a block is where it was; one that no node has any more did not leave the chain. */
async function isOnChain(
  { chain }: TrackerTools,
  { number, hash }: BlockRef,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return (await chain.header(number, signal))?.hash.equals(hash) === true
  } catch (error) {
    if (error instanceof BlockMissingError) return true
    throw error
  }
}

type Group = { at: BlockRef; newest: BlockRef; pairs: readonly DueBalance[] }

/** Reads what can be read, and gives those pairs that nobody can read: one must not hold up all. */
async function readGroupAround(
  tools: TrackerTools,
  group: Group,
  errors: unknown[],
  signal: AbortSignal,
): Promise<DueBalance[]> {
  try {
    await readGroup(tools, group, signal)
    return []
  } catch (error) {
    if (!(error instanceof BalancesUnreadableError)) throw error
    errors.push(error)
    const isLeft = ({ address, contract_address }: DueBalance): boolean =>
      error.queries.some(
        (query) =>
          query.address.equals(address) && query.asset.contract_address.equals(contract_address),
      )
    const { left = [], rest = [] } = Object.groupBy(group.pairs, (pair) =>
      isLeft(pair) ? 'left' : 'rest',
    )
    if (rest.length > 0) await readGroup(tools, { ...group, pairs: rest }, signal)
    return left
  }
}

async function readGroup(
  { db, clock, chain_id, chain, lease }: TrackerTools,
  { at, newest, pairs }: Group,
  signal: AbortSignal,
): Promise<void> {
  const keyOfPair = ({ address, asset_id }: DueBalance) => `${address.toString('hex')}/${asset_id}`
  const queries = new Map<string, BalanceQuery>()
  for (const pair of pairs) {
    const { address, asset_type, contract_address, token_id, token_account_address } = pair
    queries.set(keyOfPair(pair), {
      address,
      asset: { asset_type, contract_address, token_id },
      ...(token_account_address && { token_account_address }),
    })
  }
  const answers = await chain.readBalances([...queries.values()], at, signal)
  if (answers.some(({ block_number }) => block_number < at.number))
    throw new ChainUnavailableError(`no node has reached block ${at.number}`)
  const readings = new Map([...queries.keys()].map((key, index) => [key, answers[index]!]))
  const now = new Date(clock.now())
  const reading_id = randomUUIDv7()
  await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    await awaitCursor(trx, chain_id)
    if (chain.reorganizes && !(await holdBlock(trx, chain_id, at)))
      throw new BlockGoneError(`block ${at.number} left the chain while balances were read`)
    // A node that changes branches may answer for a block of both with the one that it is leaving.
    if (chain.reorganizes && !(await holdBlock(trx, chain_id, newest)))
      throw new ChainUnavailableError('the chain reorganized while balances were read')
    const all = pairs.map((pair) => {
      const { balance, block_number } = readings.get(keyOfPair(pair))!
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
    // Work that is gone was taken back with its address or contract. Should they be there again, they
    // were away for some blocks, which this reading may not know.
    const open = new Set<string>()
    for (const [block_number, some] of Map.groupBy(all, (row) => row.as_of_block))
      for (const pair of await settleBalanceChanges(trx, some, block_number))
        open.add(keyOfWork(pair))
    const rows = all.filter((row) => open.has(keyOfWork(row)))
    await storeReadings(trx, rows, { chain_id, now })
    if (chain.reorganizes) await rememberReadings(trx, rows, { chain_id, reading_id })
  })
}
