import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { createClient } from '../../client/src/client.ts'
import { readAuditEvents } from '../../src/storage/audit/audit.ts'
import { chainEvents } from '../../src/workers/janitor/audit-chain.ts'
import { startTestApp } from '../helpers/app.ts'
import { bundledService } from '../helpers/bundle.ts'
import { freshDatabase } from '../helpers/database.ts'
import { createRandom } from '../helpers/random.ts'
import { end, startService } from './replay.ts'

const main = await bundledService()
/** The campaign sets 10. */
const kills = Number(process.env.SECURITY_KILLS ?? 1)

it('kills of the service lose no event and no result twice, and the chain verifies', {
  timeout: 240_000 + kills * 20_000,
}, async () => {
  const database = await freshDatabase()
  const random = createRandom(18)
  const { host, user, database: name } = database.connection
  const url = `postgres:///${name}?host=${encodeURIComponent(host)}&user=${user}`
  const beside = await startTestApp({ database })
  const { admin, organization_id } = await beside.createTenant()
  const { installation, master_key } = beside
  // Only the killed services move events into the chain.
  await beside.stop()
  let running = await startService(url, master_key)
  const acknowledged = new Set<string>()
  let writing = true
  const write = async () => {
    while (writing) {
      const made = randomUUID()
      const client = createClient({ base_url: running.url, ...admin, retries: 0 })
      await client.admin.CreateCredential({ organization_id, name: made }).then(
        () => {
          acknowledged.add(made)
          return delay(10)
        },
        () => delay(100),
      )
    }
  }
  const writers = [1, 2, 3, 4, 5, 6].map(write)
  for (let kill = 0; kill < kills; kill++) {
    const target = acknowledged.size + 10
    await expect.poll(() => acknowledged.size >= target, { timeout: 60_000 }).toBe(true)
    await delay(random() * 400)
    await end(running, 'SIGKILL')
    running = await startService(url, master_key)
  }
  writing = false
  await Promise.all(writers)
  await end(running, 'SIGTERM')

  // As the service does after two minutes with events that a killed process left without a result.
  const { db } = database
  const before = new Date(Date.now() + 1_000)
  while ((await chainEvents(installation, { before, limit: 500 })).count > 0);

  const verified = await promisify(execFile)(
    process.execPath,
    [main, 'audit', 'verify', '--json'],
    {
      env: {
        ...process.env,
        PORTOLAN_DATABASE__URL: url,
        PORTOLAN_SECURITY__MASTER_KEY: master_key,
      },
    },
  )
  expect(JSON.parse(verified.stdout).broken).toBeNull()

  const events = (await Array.fromAsync(readAuditEvents(db, { after: 0 }))).filter(
    ({ operation }) => operation === 'CreateCredential',
  )
  const countOf = Map.groupBy(events, ({ detail }) => JSON.parse(detail!).target.name as string)
  const repeated = [...countOf].filter(([, found]) => found.length > 1).map(([name]) => name)
  expect(repeated).toEqual([])
  expect([...acknowledged].filter((name) => !countOf.has(name))).toEqual([])
  const failed = events.filter(({ result }) => result === 'AUDIT_RESULT_FAILED')
  expect(failed.filter(({ detail }) => acknowledged.has(JSON.parse(detail!).target.name))).toEqual(
    [],
  )
  // What was changed without an answer is in the log too.
  const { rows } = await database.pool.query<{ name: string }>(
    `select name from credential where name <> 'test'`,
  )
  expect(rows.filter(({ name }) => !countOf.has(name))).toEqual([])
  expect(acknowledged.size).toBeGreaterThan(kills * 10)
})
