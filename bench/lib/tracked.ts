import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { insertOrganization } from '../../src/storage/access/organizations.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { insertWallet, touchWallet } from '../../src/storage/wallets/wallets.ts'
import { withoutIndexes } from './without-indexes.ts'

/** An organization that tracks many addresses and some token contracts. */
export async function registerTracked(
  db: Db,
  {
    network_id,
    addresses,
    contracts,
  }: { network_id: number; addresses: number; contracts: string[] },
): Promise<{ organization_id: string; wallet_id: string }> {
  const organization_id = randomUUIDv7()
  const wallet_id = randomUUIDv7()
  const create_time = new Date()
  const domain = `bench-${organization_id.slice(-12)}`
  await insertOrganization(db, { organization_id, name: 'bench', domain, create_time })
  await insertWallet(db, {
    wallet_id,
    organization_id,
    network_id,
    name: 'bench',
    confirmation: 1,
    create_time,
  })
  await db.transaction().execute(async (trx) => {
    // Ten million rows take half a minute this way, and many minutes with keys and references.
    await sql`set local session_replication_role = replica`.execute(trx)
    const build = await withoutIndexes(trx, 'wallet_address')
    await sql`
      insert into wallet_address (network_id, address, organization_id, wallet_id, create_time)
      select ${network_id}::int2, decode(lpad(to_hex(1000000 + i), 40, '0'), 'hex'),
        ${organization_id}::uuid, ${wallet_id}::uuid, ${create_time}::timestamptz
      from generate_series(0, ${addresses}::int - 1) i`.execute(trx)
    await build()
    await touchWallet(trx, wallet_id, { gained: addresses, update_time: create_time })
  })
  for (const contract of contracts)
    await db
      .insertInto('contract')
      .values({
        organization_id,
        network_id,
        contract_address: Buffer.from(contract.slice(2), 'hex'),
        contract_type: 'CONTRACT_TYPE_ERC20',
        contract_metadata: null,
        create_time,
      })
      .execute()
  // What filling leaves to be done later is not the work that is measured.
  await sql`vacuum (analyze) wallet_address`.execute(db)
  await sql`checkpoint`.execute(db)
  return { organization_id, wallet_id }
}
