import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { allowedConstraints, allowedStatements } from './allowed.ts'
import { analyze } from './analyze.ts'
import { placements } from './plan.ts'

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

describe('Citus', () => {
  test('every table has a placement, and the document has the same', async () => {
    const { rows } = await service.database.pool.query<{ name: string }>(`
      select c.relname as name from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and c.relname not like 'schema_migration%' order by 1`)
    expect(Object.keys(placements).sort()).toEqual(rows.map(({ name }) => name))
    const text = readFileSync(join(import.meta.dirname, '../../docs/scale-database.md'), 'utf8')
    const documented = [...text.matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, name, place]) => [
      name,
      place,
    ])
    expect(Object.fromEntries(documented)).toEqual(placements)
  })

  test('keys that Citus refuses are known', async () => {
    const { rows } = await service.database.pool.query<{
      found: string
      columns: string[]
      at: string
    }>(`
      select i.indexrelid::regclass::text as found, c.relname as at,
        array(select a.attname::text from unnest(i.indkey) k join pg_attribute a
          on a.attrelid = i.indrelid and a.attnum = k) as columns
      from pg_index i join pg_class c on c.oid = i.indrelid
      where i.indisunique and c.relnamespace = 'public'::regnamespace and not c.relispartition
      order by 1`)
    const refused = rows
      .filter(
        ({ at, columns }) =>
          placements[at] === 'organization_id' && !columns.includes('organization_id'),
      )
      .map(({ found }) => found)
    expect(refused).toEqual([...allowedConstraints.keys].sort())
    // A foreign key must hold the distribution key too, or lead to a table that is everywhere.
    const { rows: foreign } = await service.database.pool.query<{
      name: string
      from: string
      to: string
    }>(`
      select distinct c.conname as name, c.conrelid::regclass::text as "from", c.confrelid::regclass::text as "to"
      from pg_constraint c where c.contype = 'f' and c.conparentid = 0 order by 1`)
    const crossing = foreign.filter(
      ({ from, to }) =>
        placements[to] !== 'reference' &&
        placements[from] !== undefined &&
        (placements[from] === 'organization_id' || placements[to] === 'organization_id'),
    )
    expect(crossing.map(({ name }) => name)).toEqual([...allowedConstraints.foreign].sort())
  })

  test('hot statements carry the distribution key, and use nothing that Citus refuses', async () => {
    await useService()
    const found = new Map<string, Set<string>>()
    let count = 0
    for (const text of statements) {
      if (/^\s*(begin|commit|rollback|start transaction|listen|set |reset|show)/i.test(text))
        continue
      count++
      const { unkeyed, refused } = await analyze(text)
      for (const name of [...unkeyed, ...refused.map((what) => `refused: ${what}`)])
        found.set(
          name,
          (found.get(name) ?? new Set()).add(text.replace(/\s+/g, ' ').trim().slice(0, 120)),
        )
    }
    // So many that a recorder which sees nothing does not pass.
    expect(count).toBeGreaterThan(100)
    const unexpected = [...found].filter(([name]) => !allowedStatements.has(name))
    expect(Object.fromEntries(unexpected.map(([name, texts]) => [name, [...texts]]))).toEqual({})
  })
})
