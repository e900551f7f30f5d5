import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import type { WalletService } from '../../src/contract/variant.ts'
import { startTestApp, type TestApp } from '../helpers/app.ts'
import { freshDatabase } from '../helpers/database.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import type { Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { accountOf } from '../helpers/wallets.ts'

// The rows and answers of a service from before chains had free names, with the five fixed tags; see "Upgrade from the
// five tags" in docs/decisions/storage.md.
type Recorded = { path: string; body: Record<string, unknown>; answer: Record<string, unknown> }
const folder = join(import.meta.dirname, '../fixtures/upgrade')
const recorded = JSON.parse(await readFile(join(folder, 'five-tags.json'), 'utf8')) as {
  master_key: string
  organization_id: string
  admin: Pair
  member: Pair
  answers: Recorded[]
  tokens: Recorded[]
  replays: (Recorded & { key: string })[]
}
const tags: readonly WalletService[] = ['c', 't', 's', 'p']

const database = await freshDatabase()
const client = new pg.Client(database.connection)
await client.connect()
await client.query('set session_replication_role = replica')
// Columns that were added since; the service fills them when it starts.
await client.query(
  "alter table network alter variants set default '', alter is_default set default true",
)
await client.query(await readFile(join(folder, 'five-tags.sql'), 'utf8'))
await client.query("update idempotency_key set expire_time = now() + interval '1 day'")
await client.end()

// The same blocks as then: the trackers continue where the old service stopped.
const chains = createScriptedChains()
for (const tag of tags) {
  const to = accountOf(tag, 1)
  for (const value of [5n, 6n, 7n]) chains[tag].mine([{ movements: [{ to, value }] }])
  for (let left = 0; left < 10; left++) chains[tag].mine()
}
const service = await startTestApp({
  // Only its database and master key are used.
  beside: { database, master_key: recorded.master_key } as TestApp,
  chains,
  config: { webhooks: { allow_http: true, allowed_networks: ['127.0.0.0/8'] } },
})
const call = (path: string, body: object, headers = {}) =>
  service.call(path.startsWith('admin') ? recorded.admin : recorded.member, path, body, headers)

test('every answer is the one that the old service gave, apart from fields that are new', async () => {
  expect(recorded.answers.length).toBeGreaterThan(20)
  for (const { path, body, answer } of recorded.answers) {
    const { status, json } = await call(path, body)
    expect([path, status]).toEqual([path, 200])
    expect(json, path).toMatchObject(answer)
  }
})

test('page tokens of the old service continue its lists', async () => {
  for (const { path, body, answer } of recorded.tokens) {
    const { status, json } = await call(path, body)
    // Tokens are sealed anew each time.
    expect([path, status]).toEqual([path, 200])
    expect(json.transfers, path).toMatchObject(answer.transfers as object)
    expect(body.page_token).toBeTypeOf('string')
  }
})

test('a repeated creation with the same idempotency key creates nothing', async () => {
  for (const { path, body, key, answer } of recorded.replays) {
    const { status, json } = await call(path, body, { 'idempotency-key': key })
    expect([path, status, json]).toEqual([path, 200, answer])
  }
})

test('tracking continues with the next block, and earlier blocks are not repeated', async () => {
  for (const tag of tags) {
    const { wallet_id } = recorded.replays.find(({ path }) => path.startsWith(`${tag}/`))!.answer
    chains[tag].mine([{ movements: [{ to: accountOf(tag, 1), value: 9n }] }])
    for (let left = 0; left < 10; left++) chains[tag].mine()
    const old = recorded.answers.find(({ path }) => path === `${tag}/ListTransfers`)!
    const before = old.answer.transfers as { transfer_id: string }[]
    await waitFor(`the transfer on ${tag}`, async () => {
      const { json } = await call(`${tag}/ListTransfers`, { wallet_id })
      return json.transfers.length === before.length + 1
    })
    const { json } = await call(`${tag}/ListTransfers`, { wallet_id })
    const ids = (json.transfers as { transfer_id: string }[]).map(({ transfer_id }) => transfer_id)
    expect(ids).toEqual(expect.arrayContaining(before.map(({ transfer_id }) => transfer_id)))
  }
})
