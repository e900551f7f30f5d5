import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { emptyDatabase, freshDatabase } from '../../../test/helpers/database.ts'
import { silentLog } from '../../lib/log.ts'
import { insertOrganization } from '../access/organizations.ts'
import { expandBacklogs, insertBacklog, listDueBacklogs } from '../balances/backlog.ts'
import { rememberReadings, storeTracked } from '../balances/balances.ts'
import { reopenBalances } from '../balances/changes.ts'
import { readMigrations } from '../migrations/files.ts'
import { migrateDatabase } from '../migrations/migrate.ts'
import type { Db } from '../pg/database.ts'
import { ensureChain } from '../tracking/chains.ts'
import { insertWallet } from './wallets.ts'

const { db } = await freshDatabase()
const create_time = new Date('2026-01-01T00:00:00Z')
const organization_id = randomUUIDv7()
const asset_ids = [randomUUIDv7(), randomUUIDv7()]
const assetOf = (asset_id: string) => ({
  asset_type: 'ASSET_TYPE_ERC20',
  contract_address: Buffer.from(asset_id),
  token_id: 2n ** 255n,
})
const assets = new Map(asset_ids.map((asset_id) => [asset_id, assetOf(asset_id)]))
// Beyond what four bytes hold, and addresses of more than one length.
const blocks = [7, 2 ** 40 + 1, 2 ** 40 + 2]
const addresses = ['00', 'ff', '0102', '00'.repeat(20), `${'0'.repeat(39)}1`, 'ab'.repeat(32)].map(
  (hex) => Buffer.from(hex, 'hex'),
)

const changesOf = (chain_id: number, wallet_id: string) =>
  addresses.flatMap((address, at) =>
    blocks.slice(0, 1 + (at % 3)).map((block_number, place) => ({
      ...{ wallet_id, organization_id, chain_id, address, block_number },
      asset_id: asset_ids[(at + place) % 2]!,
      due_block: block_number + 2 + (at % 2),
    })),
  )

type Named = { address: Buffer; asset_id: string; block_number: number }
const nameOf = ({ address, asset_id, block_number }: Named) =>
  `${address.toString('hex')} ${asset_id} ${block_number}`

const changesIn = async (from: Db, chain_id: number) =>
  await from.selectFrom('balance_change').selectAll().where('chain_id', '=', chain_id).execute()

type NewWallet = Parameters<typeof insertWallet>[1]
const makeWallet = async (to: Db, network: string, insert = insertWallet) => {
  const chain_id = await ensureChain(to, { chain: 'c', network, create_time })
  const wallet_id = randomUUIDv7()
  await insert(to, {
    ...{ wallet_id, organization_id, chain_id, name: 'w', confirmation: 3, create_time },
  })
  return { chain_id, wallet_id }
}

const insertEarlierWallet = async (to: Db, wallet: NewWallet) => {
  const { wallet_id, chain_id, name, confirmation } = wallet
  await sql`insert into wallet values (${wallet_id}, ${organization_id}, ${chain_id}, ${name},
    ${confirmation}, ${create_time}, ${create_time})`.execute(to)
}

it('a backlog gives back the work that it was made of, as pairs and as rows', async () => {
  await insertOrganization(db, { organization_id, name: 'o', domain: 'o', create_time })
  const { chain_id, wallet_id } = await makeWallet(db, 'one')
  const changes = changesOf(chain_id, wallet_id)
  expect(await insertBacklog(db, { chain_id, changes, assets })).toBe(true)
  const due = await listDueBacklogs(db, { chain_id, head: 2 ** 41, pairs: 1 })
  const pairs = due.flatMap((backlog) => backlog.pairs)
  expect(pairs.map(nameOf).sort()).toEqual(changes.map(nameOf).sort())
  for (const pair of pairs) {
    expect(pair).toMatchObject({ wallet_id, organization_id, ...assetOf(pair.asset_id) })
    const change = changes.find((one) => nameOf(one) === nameOf(pair))!
    expect(pair.block_number + pair.confirmation - 1).toBe(change.due_block)
  }
  await expandBacklogs(db, chain_id)
  const rows = await changesIn(db, chain_id)
  expect(rows.map((row) => [nameOf(row), row.due_block, row.wallet_id]).sort()).toEqual(
    changes.map((change) => [nameOf(change), change.due_block, wallet_id]).sort(),
  )
  expect(await listDueBacklogs(db, { chain_id, head: 2 ** 41, pairs: 1 })).toEqual([])
})

it('what was read is read again when its block leaves the chain', async () => {
  const { chain_id, wallet_id } = await makeWallet(db, 'two')
  const readings = addresses.map((address, at) => ({
    ...{ wallet_id, organization_id, address, balance: 1n, as_of_block: 10 },
    ...{ asset_id: asset_ids[at % 2]!, asset_type: 'ASSET_TYPE_ERC20' },
    contract_address: Buffer.from(asset_ids[at % 2]!),
  }))
  await storeTracked(db, readings, create_time)
  await rememberReadings(db, readings, { chain_id, reading_id: randomUUIDv7() })
  await reopenBalances(db, { chain_id, above: 9, suspect_from: 10, now: create_time })
  const rows = await changesIn(db, chain_id)
  const expected = readings.map((reading) => nameOf({ ...reading, block_number: 9 }))
  expect(rows.map(nameOf).sort()).toEqual(expected.sort())
})

it('0073: documents of the earlier form say the same as before', async () => {
  const { db: old, pool } = await emptyDatabase('embedded')
  const files = await readMigrations()
  const before = files.filter(({ name }) => name < '0073')
  await migrateDatabase(old, { log: silentLog, files: before })
  await insertOrganization(old, { organization_id, name: 'o', domain: 'o', create_time })
  await sql`insert into chain (chain_id, chain, network, create_time)
    values (1, 'c', 'one', ${create_time})`.execute(old)
  const { chain_id, wallet_id } = await makeWallet(old, 'one', insertEarlierWallet)
  const changes = changesOf(chain_id, wallet_id)
  const owners = [
    ...new Set(changes.map((one) => `${one.asset_id} ${one.due_block - one.block_number + 1}`)),
  ]
  const work = {
    owners: owners.map((owner) => ({
      ...{ wallet_id, organization_id, asset_id: owner.split(' ')[0]! },
      ...{ confirmation: Number(owner.split(' ')[1]), asset_type: 'T' },
      ...{ contract_address: 'ab', token_id: '5' },
    })),
    owner: changes.map(
      (one) => 1 + owners.indexOf(`${one.asset_id} ${one.due_block - one.block_number + 1}`),
    ),
    addresses: changes.map(({ address }) => address.toString('hex')),
    blocks: changes.map(({ block_number }) => block_number),
  }
  await pool.query('insert into balance_backlog values ($1, $2, 5, $3, $4)', [
    ...[chain_id, randomUUIDv7(), changes.length, JSON.stringify(work)],
  ])
  const readings = addresses.map((address) => ({
    ...{ wallet_id, organization_id, address, balance: 1n, as_of_block: 2 ** 40 + 5 },
    ...{ asset_id: asset_ids[0]!, asset_type: 'T', contract_address: Buffer.of(0xab) },
  }))
  const pairs = {
    wallet_ids: readings.map(() => wallet_id),
    addresses: readings.map(({ address }) => address.toString('hex')),
    asset_ids: readings.map(({ asset_id }) => asset_id),
  }
  await pool.query('insert into balance_reading values ($1, $2, $3, $4)', [
    ...[chain_id, 2 ** 40 + 5, randomUUIDv7(), JSON.stringify(pairs)],
  ])

  await migrateDatabase(old, { log: silentLog, files })
  await storeTracked(old, readings, create_time)
  const due = await listDueBacklogs(old, { chain_id, head: 2 ** 41, pairs: 1 })
  const found = due.flatMap((backlog) => backlog.pairs)
  expect(found.map(nameOf).sort()).toEqual(changes.map(nameOf).sort())
  expect(found[0]).toMatchObject({ asset_type: 'T', token_id: 5n, wallet_id, organization_id })
  await expandBacklogs(old, chain_id)
  const rows = await changesIn(old, chain_id)
  expect(rows.map((row) => [nameOf(row), row.due_block]).sort()).toEqual(
    changes.map((change) => [nameOf(change), change.due_block]).sort(),
  )
  await pool.query('delete from balance_change')
  const above = 2 ** 40
  await reopenBalances(old, { chain_id, above, suspect_from: above + 5, now: create_time })
  const reopened = await changesIn(old, chain_id)
  expect(reopened.map(nameOf).sort()).toEqual(
    readings.map((reading) => nameOf({ ...reading, block_number: above })).sort(),
  )
})
