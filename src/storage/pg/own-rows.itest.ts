import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import { insertOrganization } from '../access/organizations.ts'
import { applyDeltas } from '../balances/changes.ts'
import { findStanding } from '../balances/pending.ts'
import { claimJobs } from '../tracking/jobs.ts'
import { ensureNetwork } from '../tracking/networks.ts'
import { deleteContractBalances } from '../wallets/contracts.ts'
import { findWalletsByName } from '../wallets/search.ts'
import { deleteTokenRule } from '../wallets/token-rules.ts'
import { listWallets } from '../wallets/wallets.ts'
import type { Database, Db } from './database.ts'

const create_time = new Date('2026-01-01T00:00:00Z')
const many = 10_000
const contract_address = Buffer.alloc(20, 7)

/**
 * A small organization beside others that have nearly all rows: on its network what waits for many confirmations, on the other
 * one what is due.
 */
const createWorld = async (database: Database) => {
  const { db, pool } = database
  const organization = async (name: string) => {
    const organization_id = randomUUIDv7()
    await insertOrganization(db, { organization_id, name, domain: name, create_time })
    return organization_id
  }
  const [small, middle, large] = [
    await organization('small'),
    await organization('middle'),
    await organization('large'),
  ]
  const own = await ensureNetwork(db, { chain: 's', network: 'own', create_time })
  const other = await ensureNetwork(db, { chain: 's', network: 'other', create_time })
  const addWallets = async (organization_id: string, network_id: number, count: number) => {
    const wallet_ids = Array.from({ length: count }, () => randomUUIDv7())
    await pool.query(
      `insert into wallet (wallet_id, organization_id, network_id, name, confirmation, address_count, create_time, update_time)
       select wallet_id, $1, $2, 'w', 1, 0, now(), now() from unnest($3::uuid[]) wallet_id`,
      [organization_id, network_id, wallet_ids],
    )
    return wallet_ids
  }
  const [holder] = await addWallets(small, own, 2)
  const [waiting] = await addWallets(large, own, 1)
  const listed = await addWallets(middle, own, 5_000)
  const [due] = await addWallets(large, other, many)
  const asset_id = randomUUIDv7()
  await pool.query(
    `insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time)
     values ($1, $2, 'ASSET_TYPE_S', $3, 0, now())`,
    [asset_id, own, contract_address],
  )
  const addRows = async (
    wallet_id: string | undefined,
    { network_id, count, due_block }: { network_id: number; count: number; due_block: number },
  ) => {
    const common = 'wallet_id, organization_id, address, asset_id'
    const rows = `
      select w.wallet_id, w.organization_id, int4send($3::int4 + n), $2::uuid from wallet w, generate_series(1, $4::int4) n
      where w.wallet_id = $1`
    const all = [wallet_id, asset_id, due_block, count]
    await pool.query(
      `insert into balance_change (${common}, network_id, block_number, due_block, delta)
       select r.*, $5, 1, $3, 1 from (${rows}) r`,
      [...all, network_id],
    )
    await pool.query(
      `insert into balance_pending (${common}, network_id, block_number, asset_type, contract_address, balance,
         since_block, due_block)
       select r.*, $5, 1, 'ASSET_TYPE_S', $6, 1, 1, $3 from (${rows}) r`,
      [...all, network_id, contract_address],
    )
    await pool.query(
      `insert into balance (${common}, asset_type, contract_address, balance, as_of_block, create_time, position,
         update_time)
       select r.*, 'ASSET_TYPE_S', $5, 1, 0, now(), 0, now() from (${rows}) r`,
      [...all, contract_address],
    )
  }
  await addRows(holder, { network_id: own, count: 3, due_block: 5 })
  await addRows(waiting, { network_id: own, count: many, due_block: 1_000_000 })
  await addRows(due, { network_id: other, count: many, due_block: 1 })
  await pool.query(
    `insert into job (job_id, kind, organization_id, network_id, payload, attempt_count, next_attempt_time,
       create_time, update_time)
     select gen_random_uuid(), 'cover_tokens', $1, $2, '{}', 0, now() - interval '1 day', now(), now()
     from generate_series(1, $3::int4)`,
    [large, other, many],
  )
  await pool.query(
    `insert into tracker_cursor (network_id, name, block_number, block_hash, update_time)
     values ($1, 'tracker', 4, '', now())`,
    [own],
  )
  await pool.query('analyze')
  return { ...database, small, middle, own, asset_id, listed }
}

type World = Awaited<ReturnType<typeof createWorld>>

/** What is read, and the most rows that it may read. */
const statements: Record<
  string,
  [most: number, read: (trx: Db, world: World) => Promise<unknown>]
> = {
  'what waits of a network': [200, (trx, { own }) => findStanding(trx, own)],
  // All that wait at most, and none of the balances of others.
  'net changes that are due': [
    2 * many + 200,
    (trx, { own }) => applyDeltas(trx, { network_id: own, head: 5, limit: 100, now: create_time }),
  ],
  'jobs of a network': [
    200,
    (trx, { own }) =>
      claimJobs(trx, { kind: 'cover_tokens', network_id: own, claimMs: 1_000, limit: 10 }),
  ],
  'the last page of wallets': [
    200,
    (trx, { middle, own, listed }) =>
      listWallets(
        trx,
        { organization_id: middle, network_id: own },
        { after: listed.at(-2)!, limit: 100 },
      ),
  ],
  // All wallets of the organization.
  'wallets by name': [
    6_000,
    (trx, { middle, own }) =>
      findWalletsByName(trx, { organization_id: middle, network_ids: [own], limit: 10 }, 'absent'),
  ],
  'balances of a contract that is removed': [
    200,
    (trx, { small, own }) =>
      deleteContractBalances(
        trx,
        { organization_id: small, network_id: own },
        contract_address,
        100,
      ),
  ],
  'balances of a token that is removed': [
    200,
    (trx, { small, own, asset_id }) =>
      deleteTokenRule(trx, { organization_id: small, network_id: own }, { asset_id }, 100),
  ],
}

class Undo extends Error {}

/** How many rows of all tables some work reads, which is undone. The server includes what a session has not reported yet. */
const countRead = async (db: Db, work: (trx: Db) => Promise<unknown>): Promise<number> => {
  let count = 0
  const counted = db.transaction().execute(async (trx) => {
    // The default of a server, with which reading in the order of another index looks cheap.
    await sql`set local random_page_cost = 4`.execute(trx)
    const soFar = async () => {
      const { rows } = await sql<{ read: string }>`
        select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::text as read
        from pg_stat_xact_user_tables`.execute(trx)
      return Number(rows[0]!.read)
    }
    const before = await soFar()
    await work(trx)
    count = (await soFar()) - before
    throw new Undo()
  })
  await expect(counted).rejects.toBeInstanceOf(Undo)
  return count
}

// Versions of the server plan them differently.
describe.each(['embedded', 'system'] as const)(
  'on the %s server, a statement reads rows of its organization and network only',
  (engine) => {
    let world: World
    beforeAll(async () => {
      if (hasEngine(engine)) world = await createWorld(await freshDatabase(engine))
    })

    it.skipIf(!hasEngine(engine)).each(Object.keys(statements))('%s', async (name) => {
      const [most, read] = statements[name]!
      expect(await countRead(world.db, (trx) => read(trx, world))).toBeLessThan(most)
    })
  },
)
