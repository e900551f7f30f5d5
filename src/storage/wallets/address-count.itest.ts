import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { emptyDatabase } from '../../../test/helpers/database.ts'
import { silentLog } from '../../lib/log.ts'
import { insertOrganization } from '../access/organizations.ts'
import { readMigrations } from '../migrations/files.ts'
import { migrateDatabase } from '../migrations/migrate.ts'
import { ensureChain } from '../tracking/chains.ts'
import { findWallet } from './wallets.ts'

it('0160: wallets that exist know how many addresses they have', async () => {
  const { db } = await emptyDatabase('embedded')
  const files = await readMigrations()
  await migrateDatabase(db, { log: silentLog, files: files.filter(({ name }) => name < '0160') })
  const organization_id = randomUUIDv7()
  const create_time = new Date(0)
  await insertOrganization(db, { organization_id, name: 'o', domain: 'o', create_time })
  const chain_id = await ensureChain(db, { chain: 'c', network: 'mainnet', create_time })
  const counts = [0, 1, 7]
  const wallet_ids = counts.map(() => randomUUIDv7())
  for (const [at, wallet_id] of wallet_ids.entries()) {
    await sql`insert into wallet values (${wallet_id}, ${organization_id}, ${chain_id}, 'w', 1,
      ${create_time}, ${create_time})`.execute(db)
    for (let i = 0; i < counts[at]!; i++)
      await sql`insert into wallet_address values (${chain_id}, ${randomBytes(20)},
        ${organization_id}, ${wallet_id}, ${create_time})`.execute(db)
  }
  await migrateDatabase(db, { log: silentLog, files })
  const found = await Promise.all(
    wallet_ids.map((wallet_id) => findWallet(db, { organization_id, chain_id }, wallet_id)),
  )
  expect(found.map((wallet) => wallet?.address_count)).toEqual(counts)
})
