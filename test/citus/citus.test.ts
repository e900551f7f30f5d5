import { randomUUIDv7 } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { erasePage, requestDeletion } from '../../src/storage/access/organization-erasing.ts'
import { distributedTables } from '../../src/storage/migrations/distribute.ts'
import {
  deleteTransfersAbove,
  hasTransfersBetween,
  listTransactionTransfers,
  listWalletTransfers,
  updateTransfers,
} from '../../src/storage/transfers/transfers.ts'
import { hastenDeliveries } from '../../src/storage/wallets/confirmation.ts'
import { findTransactions } from '../../src/storage/wallets/search.ts'
import {
  countPendingTransfers,
  listNotifiedTransfers,
  listTransactionPlaces,
  listTransactionShares,
  measureTransactionShares,
} from '../../src/storage/webhooks/notified-transfers.ts'
import { startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { analyze } from './analyze.ts'

/** Every statement of this process from now on. */
const statements = new Set<string>()
const { query } = pg.Client.prototype
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  const [first] = args
  const text = typeof first === 'string' ? first : (first as { text?: string } | undefined)?.text
  if (text) statements.add(text)
  return (query as (...given: unknown[]) => unknown).apply(this, args)
} as typeof pg.Client.prototype.query
afterAll(() => {
  pg.Client.prototype.query = query
})

const root = join(import.meta.dirname, '../..')
const chains = createScriptedChains()
const webhooks = { allowed_networks: ['127.0.0.0/8'], allow_http: true }
const service = await startTestApp({ chains, config: { webhooks } })

/** Uses what a busy service does all the time: registers, pays, notifies, lists, reorganizes. */
async function useService(): Promise<void> {
  const { member, admin } = await service.createTenant()
  const call = async (name: string, body: object = {}) => {
    const { status, json } = await service.call(member, `c/${name}`, body)
    expect([name, status]).toEqual([name, 200])
    return json
  }
  const { wallet_id } = await call('RegisterWallet', { name: 'wallet', confirmation: 2 })
  const address = `0x${'c1'.repeat(20)}`
  await call('RegisterAddress', { wallet_id, address })
  await call('BatchRegisterAddresses', { wallet_id, addresses: [`0x${'c2'.repeat(20)}`] })
  const { webhook_id } = await call('RegisterWebhook', {
    webhook_endpoint: 'http://127.0.0.1:9999/hook',
    confirmation: 0,
  })
  await call('RegisterWebhookHeader', { webhook_id, header_key: 'x-key', header_value: 'v' })
  await call('RegisterSink', {
    ...{ sink_type: 'SINK_TYPE_NATS', servers: ['127.0.0.1:9999'], tls: false, confirmation: 0 },
  })
  const parsed = chains.c.parseAddress(address)
  if (!parsed.ok) throw new Error(parsed.detail)
  for (let value = 1n; value <= 3n; value++)
    chains.c.mine([{ movements: [{ to: parsed.bytes, value }] }])
  await waitFor('an attempt failed', async () => {
    const { webhook_histories } = await call('ListWebhookHistories', { webhook_id })
    return webhook_histories.some(
      ({ delivery_count }: { delivery_count: number }) => delivery_count > 0,
    )
  })
  chains.c.mine([])
  chains.c.mine([])
  await waitFor('all transfers are stored', async () => {
    const { transfers } = await call('ListTransfers', { wallet_id })
    return transfers.length === 3
  })
  await call('ListAssets', { wallet_id, asset_type: 'ASSET_TYPE_C' })
  for (const name of ['ListWallets', 'ListWebhooks', 'ListSinks']) await call(name)
  for (const name of ['ListAddresses', 'ListTransfers']) await call(name, { wallet_id })
  await call('GetWallet', { wallet_id })
  await call('ListWebhookHeaders', { webhook_id })
  await call('UpdateConfirmation', { wallet_id, confirmation: 3 })
  await call('RenameWallet', { wallet_id, name: 'other' })
  await service.call(admin, 'admin/ListCredentials')
  await service.call(admin, 'admin/GetUsage')
  await call('RemoveAddress', { wallet_id, address })
  await call('RemoveWebhook', { webhook_id })
}

/** Everything else that reads or writes transfers; what it answers does not matter here. */
async function useTransfers(): Promise<void> {
  const { db } = service.database
  const { organization_id } = await service.createTenant()
  const [wallet_id, network_id] = [randomUUIDv7(), 1]
  const scope = { organization_id, network_id }
  const [hash, block_time] = [Buffer.alloc(32, 1), new Date()]
  const page = { limit: 1, after: { block_time, block_number: 1, ordinal: 0, side: 0 as const } }
  await listWalletTransfers(db, scope, { wallet_id, address: hash }, page)
  await listTransactionTransfers(db, scope, { transaction_hash: hash }, page)
  await findTransactions(db, organization_id, [{ network_id, hash }])
  const waiting = { organization_id, transaction_hash: hash, transfer_block: 1 }
  const bounds = { rows: 1, bytes: 1 }
  await listNotifiedTransfers(db, network_id, [waiting], bounds)
  await listTransactionPlaces(db, network_id, [waiting])
  const shares = { isWhole: true, wallet_ids: [wallet_id], ordinals: [1] }
  await listTransactionShares(db, network_id, waiting, shares, bounds)
  await measureTransactionShares(db, network_id, waiting, shares, bounds)
  await countPendingTransfers(db, network_id, { ...waiting, wallet_id, backfilled: [1] }, 1)
  await db.transaction().execute(async (trx) => {
    await hasTransfersBetween(trx, network_id, { from: 1_000, before: 1_001 })
    await deleteTransfersAbove(trx, network_id, 1_000)
    await updateTransfers(trx, network_id, [{ transfer_hash: hash, detail: {} }])
    await hastenDeliveries(trx, scope, {
      ...{ wallet_id, depth: 1, head: 1, after: undefined, limit: 1 },
    })
  })
  await requestDeletion(db, organization_id, block_time)
  await erasePage(db, { organization_id, limit: 10 })
}

// Of all organizations at once; each begins with this text.
const ofNetwork: Readonly<Record<string, string>> = {
  'lock table transfer': 'a new month',
  'select from transfer where network_id = $1 and block_number >= $2':
    'the blocks of a reorganization that are not stored',
  'delete from transfer where network_id = $1 and block_number > $2': 'a reorganization',
  'update transfer t set detail': 'a message of T that bounced',
}

/** Files of the service that use the table. A new one needs its statements in this test. */
const files = [
  'src/storage/access/organization-erasing.ts',
  'src/storage/pg/partitions.ts',
  'src/storage/transfers/transfers.ts',
  'src/storage/wallets/confirmation.ts',
  'src/storage/wallets/search.ts',
  'src/storage/webhooks/notified-transfers.ts',
  // The count that `portolan rewind` shows.
  'src/workers/tracker/rewind.ts',
]

describe('Citus', () => {
  test('the unique key of a distributed table gets the organization, and no foreign key leads to or from it', async () => {
    const { rows } = await service.database.pool.query<{ name: string }>(
      `select conname as name from pg_constraint
       where conparentid = 0 and contype in ('p', 'u', 'f')
         and (conrelid = any($1::text[]::regclass[]) or confrelid = any($1::text[]::regclass[]))
       union all
       select indexrelid::regclass::text from pg_index
       where indisunique and not indisprimary and indrelid = any($1::text[]::regclass[])`,
      [[...distributedTables]],
    )
    expect(rows).toEqual([{ name: 'transfer_pkey' }])
  })

  test('statements on transfers name the organization or are listed as work of a network, and Citus refuses none', async () => {
    await useService()
    await useTransfers()
    let count = 0
    const unkeyed: string[] = []
    for (const text of statements) {
      if (/^\s*(begin|commit|rollback|start transaction|listen|set |reset|show)/i.test(text))
        continue
      const finding = await analyze(text)
      if (!finding.isDistributed) continue
      count++
      expect([text, finding.refused]).toEqual([text, []])
      if (finding.unkeyed.length > 0) unkeyed.push(text.replace(/\s+/g, ' ').trim())
    }
    // So many that a recorder which sees nothing does not pass.
    expect(count).toBeGreaterThan(12)
    const kindOf = (text: string) =>
      Object.keys(ofNetwork).find((begin) => text.startsWith(begin)) ?? text
    expect(unkeyed.map(kindOf).sort()).toEqual(Object.keys(ofNetwork).sort())
  })

  test('every file that uses a distributed table is known', () => {
    const used = globSync('src/**/*.ts', { cwd: root })
      .filter((file) => !/\.i?test\.ts$/.test(file) && !file.endsWith('/distribute.ts'))
      .filter((file) =>
        /\b(from|join|update|into|table) transfer\b|'transfer'::regclass/.test(
          readFileSync(join(root, file), 'utf8'),
        ),
      )
    expect(used.sort()).toEqual(files)
  })
})
