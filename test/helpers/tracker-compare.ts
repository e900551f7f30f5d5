import type { Db } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { keyOf } from './tracker-changes.ts'
import {
  expectedList,
  expectedTouches,
  expectedTransfers,
  own,
  ruleOf,
  storedBlocks,
} from './tracker-reference.ts'
import type { World } from './tracker-world.ts'

type Difference = { what: string; expected: unknown; found: unknown }

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** Everything in which the service and the model differ; only asked when the tracker is at the head. */
export const compareWorld = async (db: Db, world: World): Promise<Difference[]> => {
  const { bench, callers, wallets } = world
  const { chain, network_id } = bench
  const cursor = await findCursor(db, network_id)
  if (!cursor?.block_hash.equals(chain.canonical().at(-1)!.hash)) return []
  const head = cursor.block_number
  // After a rollback for a longer branch that was left before the tracker had it: what had its confirmations at the higher
  // head was stored and notified.
  if (head < world.peak()) return []
  const blocks = storedBlocks(chain, world.processed, head)
  const organizations = callers.map(({ organization_id }) => organization_id)
  const transfers = blocks.flatMap((block) => expectedTransfers(chain, block, organizations))
  const differences: Difference[] = []
  const check = (what: string, expected: unknown, found: unknown) => {
    if (!same(expected, found)) differences.push({ what, expected, found })
  }

  const stateOf = (wallet_id: string, block_number: number, failed: boolean) => {
    const { confirmation, confirmed } = wallets.find((wallet) => wallet.wallet_id === wallet_id)!
    if (chain.service !== 'c') return undefined
    if (failed) return 'TRANSFER_STATE_FAILED'
    const due = block_number + Math.max(confirmation, 1) - 1
    const isPending = head < due && block_number > confirmed
    return isPending ? 'TRANSFER_STATE_PENDING' : 'TRANSFER_STATE_SUCCESS'
  }

  for (const { wallet_id, caller } of wallets) {
    const listed: unknown[] = []
    let page_token = ''
    do {
      const page = await caller.call('ListTransfers', {
        wallet_id,
        page_size: 1 + world.pick(9),
        ...(page_token && { page_token }),
      })
      for (const record of page.transfers) {
        const hash = bench.family.parseTransactionHash(
          record.transaction_hash ?? record.transaction_digest,
        )
        listed.push([hash?.toString('hex'), record.asset_type, record.value, record.transfer_state])
      }
      page_token = page.pagination.next_page_token
    } while (page_token)
    check(
      `transfers of ${wallet_id}`,
      expectedList(transfers, wallet_id).map((one) => [
        one.transaction_hash,
        one.asset_type,
        one.value,
        stateOf(wallet_id, one.block_number, one.failed),
      ]),
      listed,
    )
  }

  const balances = await listStored(db, network_id)
  const existing = new Set<string>()
  const touches = blocks.flatMap((block) =>
    expectedTouches(chain, network_id, block, world.snapshot()),
  )
  /** The blocks of gaps that were filled, for each balance that they touch. */
  const filled = Map.groupBy(
    touches.filter(({ block_number }) => world.refilled.has(block_number)),
    keyOf,
  )
  for (const row of balances) {
    const { address, asset_type, contract_address, token_id, as_of_block } = row
    existing.add(keyOf(row))
    const query = { address, asset: { asset_type, contract_address, token_id } }
    const confirmed = Math.max(0, head - Math.max(row.confirmation, 1) + 1)
    const at = Math.max(as_of_block, confirmed)
    const what = `balance ${asset_type} of ${address.toString('hex')} as of ${as_of_block}`
    check(`${what}, read at a block that is there`, true, as_of_block <= head)
    if (as_of_block > head) continue
    const {
      isChanged,
      wasDeep,
      imported: before,
    } = wallets.find(({ wallet_id }) => wallet_id === row.wallet_id)!
    // What a deep wallet showed before a rewind stays until what was read since is confirmed.
    const rereadBy =
      world.settledFrom(world.rewoundTo()) + row.confirmation - 1 + (isChanged || wasDeep ? 50 : 0)
    if (row.is_stale && (row.confirmation > 32 || wasDeep) && head < rereadBy) continue
    // After a gap all balances are read again. Net changes continue being added meanwhile.
    const isReopened = world.isReopened(Math.max(row.confirmation, 1))
    if (chain.balances === 'delta' && !isReopened) continue
    check(what, String(chain.balanceAt(query, as_of_block)), String(row.balance))
    // Read at the newest block, which may be later than the one that was to be read.
    const isDeep = row.confirmation > 32
    // What was read before more confirmations were asked for stays.
    if (chain.balances === 'delta' || isDeep)
      check(
        `${what}, not before its confirmation`,
        String(chain.balanceAt(query, Math.min(as_of_block, Math.max(confirmed, before)))),
        String(row.balance),
      )
    // What moved before the registration shows once the head of that moment is confirmed.
    const address_since = world.now.addresses.get(own(row.organization_id, address))
    const contract_since = world.now.contracts.get(own(row.organization_id, contract_address))
    const registered = Math.max(
      world.since.get(address_since?.registration ?? 0) ?? 0,
      world.since.get(contract_since ?? 0) ?? 0,
      ...['', row.wallet_id].map(
        (of) =>
          world.since.get(
            world.now.rules.get(
              ruleOf(row.organization_id, of, { asset_type, contract_address, token_id }),
            ) ?? 0,
          ) ?? 0,
      ),
    )
    const begun = Math.max(
      registered,
      world.gapEnd(),
      // What is found by a refresh, or in a gap before the registration, is read again once the head of that moment is
      // confirmed.
      world.first.get(keyOf(row)) ?? 0,
      ...(filled.get(keyOf(row)) ?? [])
        .filter(({ block_number }) => block_number <= registered)
        .map(({ block_number }) => world.refilled.get(block_number)!),
    )
    // What was read ahead is shown when the block at which it was read has the new number of confirmations.
    if (confirmed >= begun && isReopened && !isDeep && !wasDeep)
      check(`${what}, up to ${at}`, String(chain.balanceAt(query, at)), String(row.balance))
    // One that is read ahead has all that was read at a head that is confirmed now.
    const read = Math.max(as_of_block, world.settledUntil(confirmed))
    const complete = Math.max(
      world.settledFrom(Math.max(begun, world.reopenedFrom())),
      ...(filled.get(keyOf(row)) ?? []).map(({ block_number }) =>
        world.settledFrom(world.refilled.get(block_number)!),
      ),
    )
    const isComplete = world.settledUntil(confirmed) >= complete
    if (isDeep && !isChanged && chain.balances === 'read' && isComplete)
      check(`${what}, read by ${read}`, String(chain.balanceAt(query, read)), String(row.balance))
  }
  for (const touch of touches) {
    const { confirmation, isChanged, wasDeep } = wallets.find(
      ({ wallet_id }) => wallet_id === touch.wallet_id,
    )!
    // A deep wallet is read when the tracker has caught up, in batches of fifty. What was read stays when its number changes.
    const isDeep = confirmation > 32
    const late = (isDeep && isChanged) || wasDeep ? 50 : 0
    // Of a chain with net changes, a balance that was first seen in a gap is read from where the tracker was when it was
    // filled, and no first reading counts before the end of a gap is confirmed.
    const isDelta = chain.balances === 'delta'
    const seen = isDelta ? Math.max(world.gapEnd(), world.refilled.get(touch.block_number) ?? 0) : 0
    // A rewind removes what a deep wallet has read and not shown: the block that was chosen may be on one branch only.
    const found =
      isDeep && !isDelta
        ? Math.max(world.rewoundTo(), world.refilled.get(touch.block_number) ?? 0)
        : 0
    const known = Math.max(touch.block_number, seen, found)
    // Unless its number changed, it is known since when its balance was read.
    const from = isDeep && !isDelta && !isChanged ? world.settledFrom(known) : known
    if (from + Math.max(confirmation, 1) - 1 + late > head) continue
    check(`balance ${keyOf(touch)} is listed`, true, existing.has(keyOf(touch)))
  }

  for (const webhook of world.now.webhooks) {
    const rows = await db
      .selectFrom('delivery')
      .select(['sequence', 'data', 'transaction_hash'])
      .where('webhook_id', '=', webhook.webhook_id)
      .where('sequence', 'is not', null)
      .orderBy('sequence')
      .execute()
    check(
      `sequence of ${webhook.webhook_id}`,
      rows.map((_, at) => at + 1),
      rows.map(({ sequence }) => sequence),
    )
    /** The last notification of each transaction, which must be the truth. */
    const last = new Map<string, string>()
    for (const { data, transaction_hash } of rows) {
      const { transfers: records = [] } = data as { transfers?: Notified[] }
      const hash = transaction_hash!.toString('hex')
      const says = records.map(({ wallet_id, asset_type, value, transfer_state }) =>
        [wallet_id, asset_type, value, transfer_state].join(' '),
      )
      const text = says.every((one) => one.endsWith(reorged)) ? reorged : says.sort().join()
      check(`something new of ${hash}`, false, last.get(hash) === text)
      last.set(hash, text)
    }
    const onChain = new Set(chain.canonical().map(({ hash }) => hash.toString('hex')))
    const expected = new Map([...last.keys()].map((hash) => [hash, reorged]))
    for (const { block_number } of world.due.filter(
      (one) => one.webhook === webhook && onChain.has(one.block_hash),
    )) {
      const mine = transfers.filter(
        (one) =>
          one.block_number === block_number &&
          one.organization_id === webhook.organization_id &&
          (webhook.wallet_id === null || webhook.wallet_id === one.wallet_id),
      )
      for (const [hash, all] of Map.groupBy(mine, (one) => one.transaction_hash)) {
        const records = new Map(all.map((one) => [`${one.wallet_id}/${one.ordinal}`, one]))
        const says = [...records.values()].map(({ wallet_id, asset_type, value, failed }) =>
          [wallet_id, asset_type, value, stateOf(wallet_id, block_number, failed)].join(' '),
        )
        expected.set(hash, says.sort().join())
      }
    }
    check(
      `last notifications of ${webhook.webhook_id}`,
      [...expected].sort(byHash),
      [...last].sort(byHash),
    )
  }
  return differences
}

const listStored = async (db: Db, network_id: number) =>
  await db
    .selectFrom('balance')
    .innerJoin('asset', 'asset.asset_id', 'balance.asset_id')
    .innerJoin('wallet', 'wallet.wallet_id', 'balance.wallet_id')
    .where('wallet.network_id', '=', network_id)
    .select([
      'balance.wallet_id',
      'balance.address',
      'balance.balance',
      'balance.as_of_block',
      'balance.is_stale',
      'balance.asset_id',
      'balance.organization_id',
      'asset.asset_type',
      'asset.contract_address',
      'asset.token_id',
      'wallet.confirmation',
    ])
    .execute()

/**
 * Sums of net changes that are not the balance of their block, wherever the tracker is. Those whose block was taken back must
 * be what they were at some block, and no other sum.
 */
export const compareSums = async (db: Db, { bench, ...world }: World): Promise<Difference[]> => {
  const { chain, network_id } = bench
  const cursor = await findCursor(db, network_id)
  if (chain.balances !== 'delta' || !cursor) return []
  const blocks = chain.canonical().map(({ number }) => number)
  return (await listStored(db, network_id)).flatMap((row) => {
    const { address, asset_type, contract_address, token_id, as_of_block, confirmation } = row
    if (!world.isSummed(Math.max(confirmation, 1), cursor.block_number)) return []
    const query = { address, asset: { asset_type, contract_address, token_id } }
    const at = row.is_stale ? blocks : [as_of_block]
    if (at.some((block) => chain.balanceAt(query, block) === row.balance)) return []
    const what = `sum ${asset_type} of ${address.toString('hex')} at ${cursor.block_number}, stale: ${row.is_stale}`
    const expected = `as of ${as_of_block}: ${chain.balanceAt(query, as_of_block)}`
    return [{ what, expected, found: String(row.balance) }]
  })
}

type Notified = { wallet_id: string; asset_type: string; value: string; transfer_state?: string }

const reorged = 'TRANSFER_STATE_REORGED'
const byHash = ([a]: [string, string], [b]: [string, string]): number => (a < b ? -1 : 1)
