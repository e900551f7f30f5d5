import { randomBytes, randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { countKeyUses, resealAll, sealedColumns } from '../../src/domain/access/reseal.ts'
import { createSealer, SealError } from '../../src/storage/access/seal.ts'
import { tables } from '../../src/storage/pg/tables.ts'
import { startTestApp, type TestApp } from '../helpers/app.ts'
import { freshDatabase } from '../helpers/database.ts'
import { noteSecret } from '../helpers/log-capture.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'

const [oldKey, newKey] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
noteSecret(oldKey)
noteSecret(newKey)
const database = await freshDatabase()
const chains = createScriptedChains()

const start = (keys: string[]) =>
  startTestApp({ database, chains, config: { security: { master_key: keys.join('\n') } } })

it('every sealed column of the schema is sealed again by a rotation', () => {
  const inSchema = Object.entries(tables).flatMap(([table, columns]) =>
    Object.keys(columns)
      .filter((column) => column.endsWith('_sealed'))
      .map((column) => `${table}.${column}`),
  )
  const known = sealedColumns.map(({ table, column }) => `${table}.${column}`)
  expect([...known].sort()).toEqual(inSchema.sort())
})

it('the master key is rotated while two services serve signed requests', async () => {
  const alone = await start([oldKey])
  const sealer = createSealer(Buffer.from(oldKey, 'hex'))
  Object.assign(alone.installation, { sealer })
  const tenant = await alone.createTenant()
  let failures = 0
  let calls = 0
  let running = true
  let services: TestApp[] = [alone]

  const call = async (on: TestApp) => {
    const key = randomUUID()
    const answers = [
      await on.call(tenant.admin, 'admin/ListCredentials', {
        organization_id: tenant.organization_id,
      }),
      await on.call(tenant.member, 'c/RegisterWebhook', {
        webhook_endpoint: `https://example.com/${key}`,
        confirmation: 1,
      }),
      await on.call(
        tenant.admin,
        'admin/CreateCredential',
        { organization_id: tenant.organization_id, name: key },
        { 'idempotency-key': key },
      ),
    ]
    // What one service has just sealed, every other one opens.
    const { credential } = answers[2]!.json
    const { webhook_id } = answers[1]!.json
    for (const other of services) {
      answers.push(await other.call(credential, 'c/GetWebhookSigningSecret', { webhook_id }))
    }
    calls += answers.length
    failures += answers.filter(({ status }) => status !== 200).length
  }
  const traffic = (async () => {
    while (running) for (const each of [...services]) await call(each)
  })()
  const until = async (more: number) => {
    const target = calls + more
    await expect.poll(() => calls >= target, { timeout: 30_000 }).toBe(true)
  }

  await until(5)
  // Added everywhere, then activated everywhere, one service after the other.
  const [a, b] = [await start([oldKey, newKey]), await start([oldKey, newKey])]
  services = [a, b]
  await until(10)
  const c = await start([newKey, oldKey])
  services = [a, c]
  await until(10)
  const d = await start([newKey, oldKey])
  services = [c, d]
  // What was under way on the earlier ones is over.
  await until(20)
  const ring = createSealer(Buffer.from(newKey, 'hex'), [Buffer.from(oldKey, 'hex')])
  const { db } = database
  expect((await countKeyUses(db)).some(({ key_id }) => key_id !== ring.key_id)).toBe(true)

  // Interrupted after a page, and run again.
  const interrupted = resealAll(
    { db, sealer: ring },
    {
      pageSize: 2,
      onPage: () => {
        throw new Error('interrupted')
      },
    },
  )
  await expect(interrupted).rejects.toThrow('interrupted')
  await until(10)
  expect(await resealAll({ db, sealer: ring }, { pageSize: 3 })).toBeGreaterThan(3)
  const left = (await countKeyUses(db)).filter(({ key_id }) => key_id !== ring.key_id)
  expect(left).toEqual([])

  for (const name of ['audit_chain', 'installation_key']) {
    const use = (await countKeyUses(db)).find(({ table }) => table === name)
    expect(use?.count, name).toBe(1)
  }

  // The old key is removed, and everything opens.
  const e = await start([newKey])
  services = [e]
  await until(15)
  running = false
  await traffic
  expect(failures).toBe(0)
  const only = createSealer(Buffer.from(newKey, 'hex'))
  expect(await resealAll({ db, sealer: only })).toBe(0)
  await expect(start([oldKey])).rejects.toThrow(SealError)
}, 120_000)
