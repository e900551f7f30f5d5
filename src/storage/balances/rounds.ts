// The position of a comparison that walks through all balances within a period, so that a restart and a failure continue
// where it was. The differences that it finds are kept here as well, at most `keptDifferences` of a network.

import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import type { ContractType } from '../../contract/records/assets.ts'
import { insertRows } from '../pg/bulk.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import { openOrganizationEvent } from '../tracking/operational-events.ts'
import type { walletTables } from '../wallets/tables.ts'
import { missingCount } from './missing.ts'
import type { WalkPosition } from './wallet-walk.ts'

/** A round through all balances of a chain. */
export type BalanceRound = RowOf<typeof walletTables.balance_round>

/** The round that is under way, if any. */
export const findRound = async (db: Db, network_id: number): Promise<BalanceRound | undefined> =>
  await db
    .selectFrom('balance_round')
    .selectAll()
    .where('network_id', '=', network_id)
    .executeTakeFirst()

/** Begins a round, in place of one that was there. */
export const beginRound = async (
  db: Db,
  network_id: number,
  {
    now,
    token_types,
  }: {
    now: Date /** Of tokens that are looked for; undefined where only what is stored is compared. */
    token_types: readonly ContractType[] | undefined
  },
): Promise<BalanceRound> => {
  // Counted once per round: the count only spreads the pages over the period.
  const { rows } = await sql<BalanceRound>`
    insert into balance_round as r (network_id, begin_time, round_number, passed_count, looks_for_missing,
      balance_count)
    select ${network_id}::int2, ${now}, 0, 0, false, s.count + ${token_types ? missingCount(network_id, token_types) : sql`0`}
    from (
      select count(*) from wallet w
      join balance b on b.wallet_id = w.wallet_id where w.network_id = ${network_id}) s
    on conflict (network_id) do update set begin_time = excluded.begin_time,
      balance_count = excluded.balance_count, passed_count = 0, looks_for_missing = false,
      round_number = coalesce(r.round_number, 0) + 1, wallet_id = null, address = null, asset_id = null
    returning *`.execute(db)
  return rows[0]!
}

/** How far a round is. */
export type RoundPosition = {
  looks_for_missing: boolean
  /** Undefined before the first pair. */
  after: WalkPosition | undefined
  /** How many were passed since the position before. */
  passed: number
}

/** Notes how far a round is. */
export const moveRound = async (
  db: Db,
  network_id: number,
  { looks_for_missing, after, passed }: RoundPosition,
): Promise<void> => {
  await sql`
    update balance_round set wallet_id = ${after?.wallet_id ?? null},
      address = ${after?.address ?? null}, asset_id = ${after?.asset_id ?? null},
      looks_for_missing = ${looks_for_missing}, passed_count = coalesce(passed_count, 0) + ${passed}
    where network_id = ${network_id}`.execute(db)
}

/** A balance that was not what the chain says. */
export type BalanceDifference = Omit<
  RowOf<typeof walletTables.balance_difference>,
  'difference_id' | 'create_time'
>

// Bounded, because a token that misbehaves can differ in every round.
const keptDifferences = 100_000

/** Stores differences; the oldest of the chain go when there are too many. */
export const insertDifferences = async (
  trx: Db,
  differences: readonly BalanceDifference[],
  { network_id, now }: { network_id: number; now: Date },
): Promise<void> => {
  if (differences.length === 0) return
  await insertRows(
    trx,
    'balance_difference',
    differences.map((one) => ({ ...one, difference_id: randomUUIDv7(), create_time: now })),
  )
  await sql`
    delete from balance_difference where network_id = ${network_id} and create_time < (
      select create_time from balance_difference where network_id = ${network_id}
      order by create_time desc offset ${keptDifferences} limit 1)`.execute(trx)
  // In the same transaction: a correction without its event would be a change that no owner can explain.
  await recordRepairs(trx, differences, { network_id, now })
}

/** Records repaired balances as operational events: one for each organization. */
export const recordRepairs = async (
  trx: Db,
  repaired: readonly { organization_id: string; wallet_id: string }[],
  { network_id, now }: { network_id: number; now: Date },
): Promise<void> => {
  for (const [organization_id, mine] of Map.groupBy(repaired, (one) => one.organization_id)) {
    const count = mine.length === 1 ? '1 balance differed' : `${mine.length} balances differed`
    await openOrganizationEvent(trx, {
      ...{ kind: 'balance_repaired', network_id, organization_id, now, isOver: true },
      subject: mine[0]!.wallet_id,
      detail: `${count} from the chain and ${mine.length === 1 ? 'was' : 'were'} corrected.`,
    })
  }
}
