import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { silentLog } from '../../src/lib/log.ts'
import { readMigrations } from '../../src/storage/migrations/files.ts'
import { migrateDatabase } from '../../src/storage/migrations/migrate.ts'
import { startTestApp, type TestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { nextMigrations } from './next-version.ts'

// The code of this checkout is the version before. `upgrade.ts` of the campaign does the same with processes.
const chains = createScriptedChains()
const old = await startTestApp({ chains })
const { member } = await old.createTenant()
const address = `0x${'6b'.repeat(20)}`
const parsed = chains.c.parseAddress(address)
if (!parsed.ok) throw new Error(parsed.detail)
const to = parsed.bytes
const { wallet_id } = (await old.call(member, 'c/RegisterWallet', { name: 'w', confirmation: 1 }))
  .json
await old.call(member, 'c/RegisterAddress', { wallet_id, address })

let paid = 0
const pay = () => {
  paid++
  chains.c.mine([{ movements: [{ to, value: BigInt(paid) }] }])
}
const countOn = async (app: TestApp): Promise<number> =>
  (await app.call(member, 'c/ListTransfers', { wallet_id, page_size: 100 })).json.transfers?.length

const versionOf = async (): Promise<string | undefined> => {
  const { rows } = await sql<{ name: string }>`
    select max(name) as name from schema_migration`.execute(old.database.db)
  return rows[0]?.name
}

test('the version before keeps serving while the next one migrates, and starts again after it', async () => {
  const statuses: number[] = []
  let isOver = false
  const client = async () => {
    while (!isOver) {
      const { status } = await old.call(member, 'c/RegisterWallet', { name: 'x', confirmation: 1 })
      statuses.push(status)
      const listed = await old.call(member, 'c/ListTransfers', { wallet_id, page_size: 10 })
      statuses.push(listed.status)
      if (paid < 60) pay()
    }
  }
  const clients = [client(), client(), client()]
  await waitFor('load', () => statuses.length > 30)
  const files = [...(await readMigrations()), ...nextMigrations]
  const migrated = await migrateDatabase(old.database.db, { log: silentLog, files })
  expect(migrated.applied).toEqual(nextMigrations.map(({ name }) => name))
  const during = statuses.length
  await waitFor('load on the new schema', () => statuses.length > during + 30)
  isOver = true
  await Promise.all(clients)
  expect([...new Set(statuses)]).toEqual([200])

  // The rollback: the version before starts on the newer schema, leaves it, and both continue.
  const back = await startTestApp({ chains, beside: old })
  expect(await versionOf()).toBe(nextMigrations.at(-1)!.name)
  expect(back.log.text()).toContain('the database has the schema of a newer version')
  pay()
  await waitFor('all transfers on both', async () =>
    (await Promise.all([old, back].map(countOn))).every((count) => count === Math.min(paid, 100)),
  )
  expect((await back.call(member, 'c/RegisterWallet', { name: 'y', confirmation: 1 })).status).toBe(
    200,
  )
})
