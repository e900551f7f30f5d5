import { randomUUIDv7 } from 'node:crypto'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { insertOrganization } from '../access/organizations.ts'
import type { Db } from '../pg/database.ts'
import { ensureNetwork } from '../tracking/networks.ts'
import { insertWallet } from '../wallets/wallets.ts'
import { expandBacklogs, insertBacklog, listDueBacklogs } from './backlog.ts'
import { rememberReadings, storeTracked } from './balances.ts'
import { reopenBalances } from './changes.ts'

const { db } = await freshDatabase()
const create_time = new Date('2026-01-01T00:00:00Z')
const organization_id = randomUUIDv7()
const asset_ids = [randomUUIDv7(), randomUUIDv7()]
const assetOf = (asset_id: string) => ({
  asset_type: 'ASSET_TYPE_ERC20' as const,
  contract_address: Buffer.from(asset_id),
  token_id: 2n ** 255n,
})
const assets = new Map(asset_ids.map((asset_id) => [asset_id, assetOf(asset_id)]))
// Beyond what four bytes hold, and addresses of more than one length.
const blocks = [7, 2 ** 40 + 1, 2 ** 40 + 2]
const addresses = ['00', 'ff', '0102', '00'.repeat(20), `${'0'.repeat(39)}1`, 'ab'.repeat(32)].map(
  (hex) => Buffer.from(hex, 'hex'),
)

const changesOf = (network_id: number, wallet_id: string) =>
  addresses.flatMap((address, at) =>
    blocks.slice(0, 1 + (at % 3)).map((block_number, place) => ({
      ...{ wallet_id, organization_id, network_id, address, block_number },
      asset_id: asset_ids[(at + place) % 2]!,
      due_block: block_number + 2 + (at % 2),
    })),
  )

type Named = { address: Buffer; asset_id: string; block_number: number }
const nameOf = ({ address, asset_id, block_number }: Named) =>
  `${address.toString('hex')} ${asset_id} ${block_number}`

const changesIn = async (from: Db, network_id: number) =>
  await from.selectFrom('balance_change').selectAll().where('network_id', '=', network_id).execute()

const makeWallet = async (to: Db, network: string) => {
  const network_id = await ensureNetwork(to, { chain: 'c', network, create_time })
  const wallet_id = randomUUIDv7()
  await insertWallet(to, {
    ...{ wallet_id, organization_id, network_id, name: 'w', confirmation: 3, create_time },
  })
  return { network_id, wallet_id }
}

it('a backlog gives back the work that it was made of, as pairs and as rows', async () => {
  await insertOrganization(db, { organization_id, name: 'o', domain: 'o', create_time })
  const { network_id, wallet_id } = await makeWallet(db, 'one')
  const changes = changesOf(network_id, wallet_id)
  expect(await insertBacklog(db, { network_id, changes, assets })).toBe(true)
  const due = await listDueBacklogs(db, { network_id, head: 2 ** 41, pairs: 1 })
  const pairs = due.flatMap((backlog) => backlog.pairs)
  expect(pairs.map(nameOf).sort()).toEqual(changes.map(nameOf).sort())
  for (const pair of pairs) {
    expect(pair).toMatchObject({ wallet_id, organization_id, ...assetOf(pair.asset_id) })
    const change = changes.find((one) => nameOf(one) === nameOf(pair))!
    expect(pair.block_number + pair.confirmation - 1).toBe(change.due_block)
  }
  await expandBacklogs(db, network_id)
  const rows = await changesIn(db, network_id)
  expect(rows.map((row) => [nameOf(row), row.due_block, row.wallet_id]).sort()).toEqual(
    changes.map((change) => [nameOf(change), change.due_block, wallet_id]).sort(),
  )
  expect(await listDueBacklogs(db, { network_id, head: 2 ** 41, pairs: 1 })).toEqual([])
})

it('what was read is read again when its block leaves the chain', async () => {
  const { network_id, wallet_id } = await makeWallet(db, 'two')
  const readings = addresses.map((address, at) => ({
    ...{ wallet_id, organization_id, address, balance: 1n, as_of_block: 10 },
    ...{ asset_id: asset_ids[at % 2]!, asset_type: 'ASSET_TYPE_ERC20' as const },
    contract_address: Buffer.from(asset_ids[at % 2]!),
  }))
  await storeTracked(db, readings, create_time)
  await rememberReadings(db, readings, { network_id, reading_id: randomUUIDv7() })
  await reopenBalances(db, { network_id, above: 9, suspect_from: 10, now: create_time })
  const rows = await changesIn(db, network_id)
  const expected = readings.map((reading) => nameOf({ ...reading, block_number: 9 }))
  expect(rows.map(nameOf).sort()).toEqual(expected.sort())
})
