import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import { insertOrganization } from '../access/organizations.ts'
import { ensureNetwork } from '../tracking/networks.ts'
import { removeAddresses } from './removing.ts'
import { insertWallet } from './wallets.ts'

const create_time = new Date('2026-01-01T00:00:00Z')

// Versions of the server plan them differently.
describe.each(['embedded', 'system'] as const)('on the %s server', (engine) => {
  it.skipIf(!hasEngine(engine))(
    'a page of removed addresses reads its own rows only, with and without statistics',
    async () => {
      const { db } = await freshDatabase(engine)
      const organization_id = randomUUIDv7()
      const network_id = await ensureNetwork(db, { chain: 'c', network: 'n', create_time })
      await insertOrganization(db, { organization_id, name: 'o', domain: 'o', create_time })
      const addWallet = async (addresses: number, balances: number) => {
        const wallet_id = randomUUIDv7()
        const scope = { organization_id, network_id }
        await insertWallet(db, { wallet_id, ...scope, name: 'w', confirmation: 1, create_time })
        await sql`
          insert into wallet_address (network_id, address, organization_id, wallet_id, create_time)
          select ${network_id}, sha256(int4send(n) || uuid_send(${wallet_id}::uuid)), ${organization_id}::uuid,
            ${wallet_id}::uuid, now() from generate_series(1, ${addresses}::int4) n`.execute(db)
        const rows = sql`
          select wallet_id, address, md5(n::text)::uuid as asset_id, organization_id
          from wallet_address, generate_series(1, ${balances}::int4) n where wallet_id = ${wallet_id}`
        await sql`
          insert into balance (wallet_id, address, asset_id, organization_id, asset_type, contract_address, balance,
            as_of_block, create_time, position, update_time)
          select r.*, 'ASSET_TYPE_ERC20', '\\x01', 0, 0, now(), 0, now() from (${rows}) r`.execute(
          db,
        )
        await sql`
          insert into balance_change (wallet_id, address, asset_id, organization_id, network_id, block_number, due_block)
          select r.*, ${network_id}, 1, 99 from (${rows}) r`.execute(db)
        const { rows: found } = await sql<{ address: Buffer }>`
          select address from wallet_address where wallet_id = ${wallet_id} order by address`.execute(
          db,
        )
        return { wallet_id, addresses: found.map(({ address }) => address) }
      }
      const few = await addWallet(100, 3)
      for (const table of ['balance', 'balance_change', 'wallet_address'])
        await sql`alter table ${sql.table(table)} set (autovacuum_enabled = false)`.execute(db)
      await addWallet(5_000, 4)
      for (const statistics of ['without', 'with']) {
        const read = await db.transaction().execute(async (trx) => {
          const soFar = async () => {
            const { rows } = await sql<{ read: string }>`
              select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::text as read
              from pg_stat_xact_user_tables`.execute(trx)
            return Number(rows[0]!.read)
          }
          const before = await soFar()
          const addresses = few.addresses.slice(statistics === 'with' ? 50 : 0).slice(0, 50)
          const page = { wallet_id: few.wallet_id, addresses, rest: undefined, limit: 1_000 }
          const { count, rest } = await removeAddresses(trx, { organization_id, network_id }, page)
          expect([count, rest]).toEqual([50, undefined])
          return (await soFar()) - before
        })
        // Fifty addresses and 150 rows of each of two tables, each looked up and then deleted.
        expect(read, statistics).toBeLessThan(1_000)
        await sql`analyze`.execute(db)
      }
    },
  )
})
